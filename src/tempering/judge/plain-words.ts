/**
 * The words that a judge may read in names and texts of an author: names of data in ordinary code. A list that Temper chose
 * holds no instruction, in whatever order an author writes its words; verbs, claims and words of other languages are not in it.
 */
const WORDS = `
address age alpha amount angle area array average axis balance base batch bit block body border bottom boundary box branch
brand bucket buffer byte bytes calendar category cell cells center character characters child children city client code codes
color colors column columns comma company component config contact content contents coordinate coordinates cost count counter
country currency cursor customer data database dataset date dates day days decimal delay delta denominator depth description
destination diameter difference digit digits dimension dimensions direction directory discount distance divisor document
documents domain duration edge edges element elements email employee encoding end entries entry epoch event events exponent
expression extension factor feature field fields file filename files first flag flags folder format fraction frequency graph
grid group groups hash header headers height hex histogram hour hours id identifier image index indices input inputs integer
interval intervals invoice item items key keys keyword keywords kind label labels language last latitude layer left length
letter letters level limit line lines link links list lists locale location log longitude lower map mapping margin mask match
matches matrix max maximum mean median metadata metric min minimum minute minutes mode month months multiple name names node
nodes number numbers numerator object objects offset operation operator option options order orders origin output outputs
owner padding page pages pair pairs parameter parent part parts path paths pattern percent percentage period phone pixel point
points polygon port position positions prefix price prices prime primes priority product products profile property quantity
quarter queue quotient radius range rate ratio record records rectangle region remainder result results right root rotation
row rows salary sale sales sample scale schema second seconds section sector segment segments sentence sentences separator
sequence series set shape side size slug sort source space speed square start state statistics status step steps stock street
string strings substring subtotal suffix sum summary symbol table tag tags target task tasks tax temperature term terms text
texts threshold time times timestamp timezone title top total totals transaction tree triangle triple tuple type types unit
units upper url urls value values variable variance vector vertex vertices volume vowel vowels week weeks weight weights width
word words x y z year years zip zone a b c i j k m n
`;

const PLAIN_WORDS: ReadonlySet<string> = new Set(WORDS.trim().split(/\s+/));

const MAX_NAME = 24;
const MAX_WORDS = 2;

/** The plain words of a name such as `totalPrice` or `row_2`; undefined for a name with any other word, or with more than two. */
export function plainWordsOf(name: string): string[] | undefined {
  if (name.length > MAX_NAME || !/^[A-Za-z][A-Za-z0-9_-]*$/.test(name)) return undefined;
  const words = (name.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g) ?? []).map((word) => word.toLowerCase());
  return words.length <= MAX_WORDS && words.every((word) => PLAIN_WORDS.has(word)) ? words : undefined;
}
