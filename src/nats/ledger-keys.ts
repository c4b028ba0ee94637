const PLAIN = /^[A-Za-z0-9-]$/;

/** Key of the document that keeps an account: `agent/<uid>`, `policy/<namespace>/<name>` with each part encoded and dots between. */
export function accountKey(account: string): string {
  return account
    .split('/')
    .map((part) => Array.from(part, encoded).join(''))
    .join('.');
}

/** The name an account has in a ledger. */
export function accountOf(key: string): string {
  return key
    .split('.')
    .map((part) => part.replaceAll(/=([0-9a-f]+)=/g, (_, code: string) => String.fromCodePoint(parseInt(code, 16))))
    .join('/');
}

function encoded(character: string): string {
  return PLAIN.test(character) ? character : `=${(character.codePointAt(0) ?? 0).toString(16)}=`;
}
