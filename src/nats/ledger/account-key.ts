const PLAIN = /^[A-Za-z0-9-]*$/;

/** Key of an account's record: the parts of `agent/<uid>` or `policy/<uid>`, each encoded, joined with dots. */
export function accountKey(account: string): string {
  return account.split('/').map(encodedPart).join('.');
}

/** The name of an account is plain most often. */
function encodedPart(part: string): string {
  return PLAIN.test(part) ? part : Array.from(part, encoded).join('');
}

function encoded(character: string): string {
  return PLAIN.test(character) ? character : `=${(character.codePointAt(0) ?? 0).toString(16)}=`;
}
