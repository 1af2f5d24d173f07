"""Word lists of news/: titles, first names, months, parts of organization names and other closed word classes."""

from __future__ import annotations

# A title is not part of a name: President Obama is the entity Obama.
TITLES = """Mr Mrs Ms Miss Dr Prof Professor Sir Dame Lord President Minister Secretary Premier Chancellor Senator Sen
    Sens Rep Reps Congressman Congresswoman Representative Gov Governor Mayor Ambassador Speaker Leader Chairman CEO
    Chairwoman Director Commissioner Superintendent Inspector Deputy Adviser Advisor Envoy Detective Constable Agent
    Sheriff Officer Judge Justice General Gen Colonel Col Captain Capt Lieutenant Lt Maj Major Sergeant Sgt Cpl Private
    Pvt Admiral Adm Commander Cmdr King Queen Prince Princess Pope Cardinal Archbishop Bishop Father Fr Rev Reverend
    Pastor Rabbi Imam Sheikh Ayatollah Duke Duchess Earl Baroness Baron Attorney Prosecutor Coach Editor Correspondent
    Analyst Spokesman Spokeswoman MP MPs PM Aunt Uncle Mum Mom Dad Mother Chief Executive Lady"""
# Before a title a modifier belongs to the title (Foreign Minister); elsewhere it is part of a name (State Department).
MODIFIERS = """Prime Vice Assistant Foreign Defense Defence Interior Finance Majority Minority Police Home Health Press
    Education Opposition Senior Associate Medical District Supreme Treasury State Staff Homeland Transportation Labor
    Agriculture Commerce Energy Trade Culture Environment Acting Special First National Intelligence Security""".split()
# Titles that also open names (General Motors), close names (Stephen King), or form a name with "of" (Duke of York).
TITLES_OPENING_NAMES = (
    "Premier General Major Justice King Queen Prince Princess Chief Father Mother Lady Captain Duke Earl".split()
)
TITLES_CLOSING_NAMES = "King Prince Pope Bishop Judge Major Cardinal Earl Duke Baron Sheriff".split()
NOBLE_TITLES = "Duke Duchess Prince Princess Earl Bishop Archbishop Lord King Queen Lady".split()
# Nouns that open a name with "of" (Bank of England), also at the start of a sentence.
ORGANIZATION_NOUNS = """
    University College Bank Department Ministry House Institute Bureau Council Court Board Office Center Centre
    Centers Church Museum Academy Association Federation Society School Republic Kingdom Gulf Isle Commission Committee
    Campaign Embassy Parliament Organization Organisation League City""".split()
# Nouns that continue a name after 's (Valentine's Day).
NOUNS_AFTER_POSSESSIVE = "Day Department Office Association Hospital College Cathedral Church Union Club".split()
# Words that make another place of a place: New Mexico is not Mexico.
REGIONS = """North South East West Northern Southern Eastern Western Central New Middle Upper Lower Great Greater Old
    Northeast Northwest Southeast Southwest Latin""".split()
# First names that are also common words.
FIRST_NAMES = """
    Bill John Jack Mark Rob Will Grant Grace Rose Faith Hope Joy Dean Chase Drew Pat Sue Rich Nick Art Lance Lee
    Miles Victor Guy Frank Ray Carol Don Bob Max Ben Harry Peter Christian Austin Amber Crystal Jade Ruby Daisy Lily Jo
    Heather Holly Robin Martin Sandy Chuck Dale Glen Cliff Mike Pete Tony Jean Jimmy Jerry Jay Tom Tim Ted Dawn Eve Rand
    Jordan Hunter Carter Taylor Dick Hank Penny Randy Roger Sally Scott Warren Charlie Josh Bobby Terry Matt""".split()
CALENDAR = """January February March April May June July August September October November December Monday Tuesday
    Wednesday Thursday Friday Saturday Sunday""".split()
# Capitalized abbreviations and words that are not entities.
NON_NAMES = """
    Jan. Feb. Mar. Apr. Jun. Jul. Aug. Sept. Sep. Oct. Nov. Dec. AM PM EST EDT GMT BST ET PT I TV DVD PC OK ID
    PhD Ph DNA HIV IVF GPS SUV SUVs VIP CV PR DJ RIP MRI PTSD ADHD CCTV PDF GDP URL ASAP FAQ Internet God Former No."""
# Class letter -> the words that always have this class; name_classes.py explains the letters.
FIXED_CLASS_WORDS = {
    "t": TITLES,
    "k": " ".join((NON_NAMES, *CALENDAR, *(f"{day}s" for day in CALENDAR[12:]))),
    "p": "de del della der den di da dos du la le van von bin ibn al el ul abu ben",
    "N": "La Le Las Los De Del Di Da Van Von El Al San Santa Saint St",
    "A": "US U.S. U.K. U.N. E.U. U.S.A. U.A.E. WHO AIDS",
    "r": "II III IV VI VII VIII IX XI XII Jr Sr",
} | {"o": "of", "f": "for on", "d": "the", "a": "and", "&": "&", "s": "'s"}
# Word -> its class letter, also for the word with a full stop (Mr and Mr.).
CLASS_LETTERS = {
    word + dot: letter for letter, words in FIXED_CLASS_WORDS.items() for word in words.split() for dot in ("", ".")
}
# Penn Treebank tags of function words.
FUNCTION_TAGS = "DT PRP PRP$ IN CC MD WP WP$ WRB WDT TO EX UH PDT RP".split()
QUOTES = "`` '' \" “ ” ` ' ‘ ’".split()
# Tokens after which a capital is expected.
SENTENCE_OPENERS = frozenset([*QUOTES, *": ; ( [ -LRB- -LSB- ... … . ? ! • * | - -- a.m. p.m.".split()])
# Words that keep their lower case inside a title.
SMALL_WORDS = "a an the of in on and to for with at from by is 's ' & , :".split()
# A name after one of these words is a place.
LOCATION_PREPOSITIONS = "in at near across throughout outside inside around".split()
# Last words of names whose first word alone can stand for the name (Likud Party, Likud).
COMPANY_SUFFIXES = "party group inc corp co ltd plc fc airport".split()
CONNECTING_WORDS = "of for on and in &".split()
# Keys of the same entity; words of a key are joined by underscores, groups are separated by |.
SAME_ENTITIES = """united_states us usa america united_states_of_america | united_kingdom uk britain great_britain
    | united_nations un | european_union eu | islamic_state isis isil is""".split("|")
