/**
 * Characters that a reader does not see as what they are: controls, marks that change the direction or the look of text,
 * everything that is usually not drawn, blank fillers, characters without a meaning of their own, noncharacters.
 */
const INVISIBLE =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\u2800\ufffc]|\u{16fe4}|\u{1d159}/u;

/** Takes one character, which may be two UTF-16 units. Line feed and tab are invisible too. */
export function isInvisible(character: string): boolean {
  return INVISIBLE.test(character);
}
