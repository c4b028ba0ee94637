const PLAIN = /^[A-Za-z0-9-]$/;

/** Key of an account's record: the parts of `agent/<uid>` or `policy/<uid>`, each encoded, joined with dots. */
export function accountKey(account: string): string {
  return account
    .split('/')
    .map((part) => Array.from(part, encoded).join(''))
    .join('.');
}

function encoded(character: string): string {
  return PLAIN.test(character) ? character : `=${(character.codePointAt(0) ?? 0).toString(16)}=`;
}
