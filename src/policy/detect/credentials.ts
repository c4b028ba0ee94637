import { eachRun, isDigit, isWord } from './characters.ts';

/** Prefix, minimal length and description of each kind of token. */
const TOKENS: readonly (readonly [prefix: string, minLength: number, description: string])[] = [
  ['AKIA', 20, 'an AWS access key'],
  ['ASIA', 20, 'an AWS access key'],
  ['AIza', 39, 'a Google API key'],
  ['ghp_', 36, 'a GitHub token'],
  ['gho_', 36, 'a GitHub token'],
  ['ghu_', 36, 'a GitHub token'],
  ['ghs_', 36, 'a GitHub token'],
  ['ghr_', 36, 'a GitHub token'],
  ['github_pat_', 40, 'a GitHub token'],
  ['glpat-', 20, 'a GitLab token'],
  ['sk-ant-', 30, 'a model provider key'],
  ['sk-proj-', 30, 'a model provider key'],
  ['sk_live_', 24, 'a payment key'],
  ['rk_live_', 24, 'a payment key'],
  ['xoxb-', 20, 'a Slack token'],
  ['xoxp-', 20, 'a Slack token'],
  ['xoxa-', 20, 'a Slack token'],
  ['xoxs-', 20, 'a Slack token'],
  ['npm_', 36, 'an npm token'],
  ['hf_', 34, 'a model hub token'],
  ['SG.', 60, 'a mail provider key'],
];

export const MIN_TOKEN = 20;

/** Members whose value counts as a secret, whatever its form. */
const SECRET_NAMES: ReadonlySet<string> = new Set([
  'password',
  'passwd',
  'passphrase',
  'apikey',
  'secretkey',
  'accesskey',
  'privatekey',
  'clientsecret',
]);

/** Whether the value of a member of this name counts as a secret, whatever its form is. */
export function isSecretName(name: string, text: string): boolean {
  return text.length >= 8 && SECRET_NAMES.has(name.toLowerCase().replaceAll(/[-_]/g, ''));
}

/** A description of the first credential found in the text; never the credential itself. Undefined when there is none. */
export function findCredential(name: string, text: string): string | undefined {
  if (isSecretName(name, text)) return 'a secret';
  return findToken(text) ?? findPrivateKey(text) ?? findUrlPassword(text) ?? findAuthorization(text);
}

function findToken(text: string): string | undefined {
  let found: string | undefined;
  eachRun(text, isTokenCharacter, MIN_TOKEN, (run) => {
    found = tokenKind(run);
    return found !== undefined;
  });
  return found;
}

export function isTokenCharacter(code: number): boolean {
  return isWord(code) || code === 0x2d || code === 0x2e;
}

export function tokenKind(run: string): string | undefined {
  if (isJsonWebToken(run)) return 'a signed token';
  if (run.startsWith('sk-') && run.length >= 35 && looksRandom(run)) return 'a model provider key';
  return TOKENS.find(([prefix, minLength]) => run.length >= minLength && run.startsWith(prefix))?.[2];
}

/** Three parts, the first two being encoded JSON objects. Service account tokens look like this. */
function isJsonWebToken(run: string): boolean {
  if (!run.startsWith('eyJ')) return false;
  const parts = run.split('.', 4);
  return parts.length >= 3 && (parts[1] ?? '').startsWith('eyJ') && (parts[2] ?? '').length >= 16;
}

function looksRandom(run: string): boolean {
  let digits = false;
  let upper = false;
  let lower = false;
  for (let index = 3; index < run.length; index += 1) {
    const code = run.charCodeAt(index);
    if (isDigit(code)) digits = true;
    else if (code >= 0x61) lower = true;
    else if (code >= 0x41) upper = true;
  }
  return digits && (upper || lower);
}

/** Whether a private key begins here. */
export function beginsPrivateKey(text: string, at: number): boolean {
  return text.slice(at, at + 64).includes('PRIVATE KEY-----');
}

function findPrivateKey(text: string): string | undefined {
  const begin = '-----BEGIN ';
  for (let at = text.indexOf(begin); at >= 0; at = text.indexOf(begin, at + begin.length)) {
    if (beginsPrivateKey(text, at)) return 'a private key';
  }
  return undefined;
}

export const MAX_AUTHORITY = 512;

function findUrlPassword(text: string): string | undefined {
  for (let at = text.indexOf('://'); at >= 0; at = text.indexOf('://', at + 3)) {
    const authority = text.slice(at + 3, at + 3 + MAX_AUTHORITY).split(/[/?#\s"']/, 1)[0] ?? '';
    const end = authority.lastIndexOf('@');
    const colon = authority.indexOf(':');
    if (colon >= 0 && colon + 1 < end) return 'a password in a URL';
  }
  return undefined;
}

function findAuthorization(text: string): string | undefined {
  const found = ['Bearer ', 'Basic '].some((scheme) => {
    const at = text.indexOf(scheme);
    return at >= 0 && isLongToken(text.slice(at + scheme.length, at + scheme.length + 24));
  });
  return found ? 'an authorization header' : undefined;
}

function isLongToken(text: string): boolean {
  if (text.length < 20) return false;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (!isTokenCharacter(code) && !'+/=~'.includes(text[index] ?? '')) return false;
  }
  return true;
}
