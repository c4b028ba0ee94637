const PLAIN = /^[A-Za-z0-9-]$/;

/** Key of the document that keeps an account: `agent/<uid>`, `policy/<namespace>/<name>` with each part encoded and dots between. */
export function accountKey(account: string): string {
  return account
    .split('/')
    .map((part) => Array.from(part, encoded).join(''))
    .join('.');
}

function encoded(character: string): string {
  return PLAIN.test(character) ? character : `=${(character.codePointAt(0) ?? 0).toString(16)}=`;
}
