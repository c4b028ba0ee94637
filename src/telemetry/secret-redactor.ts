/** The secrets that must not reach any log or report, and their redaction. */
export interface SecretRedactor {
  /** Registers a secret. Throws RangeError for fewer than 6 characters: redaction would remove ordinary words. */
  add(secret: string): void;
  remove(secret: string): void;
  /** Replaces registered secrets in all common encodings, and texts in the format of well-known keys. Takes linear time. */
  redact: (text: string) => string;
}

const REDACTED = '[redacted]';
const MIN_SECRET_LENGTH = 6;

export function createSecretRedactor(initial: readonly string[] = []): SecretRedactor {
  const forms = new Map<string, readonly string[]>();
  let all: readonly string[] = [];
  /** Longest first, so that no part of a longer form remains. */
  const refresh = (): void => {
    all = [...new Set([...forms.values()].flat())].sort((a, b) => b.length - a.length);
  };
  const secrets: SecretRedactor = {
    add(secret) {
      if (secret.length < MIN_SECRET_LENGTH) {
        throw new RangeError(`a secret must have at least ${MIN_SECRET_LENGTH} characters`);
      }
      forms.set(secret, secretForms(secret));
      refresh();
    },
    remove(secret) {
      forms.delete(secret);
      refresh();
    },
    redact(text) {
      let clean = text;
      for (const form of all) if (clean.includes(form)) clean = clean.replaceAll(form, REDACTED);
      return withoutKeys(clean);
    },
  };
  for (const secret of initial) secrets.add(secret);
  return secrets;
}

/** The secret as plain text, in JSON, URL and form encoding, in hexadecimal, and in base64 at each of its three alignments. */
export function secretForms(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const json = JSON.stringify(secret).slice(1, -1);
  const url = encodeURIComponent(secret.toWellFormed());
  const hex = bytes.toString('hex');
  const forms = [
    secret,
    json,
    url,
    url.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
    hex,
    hex.toUpperCase(),
  ];
  forms.push(new URLSearchParams([['', secret]]).toString().slice(1));
  for (const offset of [0, 1, 2]) {
    const core = base64Core(bytes, offset);
    if (core.length >= MIN_SECRET_LENGTH) forms.push(core, core.replaceAll('+', '-').replaceAll('/', '_'));
  }
  return forms;
}

/** The base64 characters that depend on these bytes alone, when the bytes start `offset` bytes after a group of three. */
function base64Core(bytes: Buffer, offset: number): string {
  const text = Buffer.concat([Buffer.alloc(offset), bytes])
    .toString('base64')
    .replaceAll('=', '');
  const first = Math.ceil((offset * 8) / 6);
  const last = Math.floor(((offset + bytes.length) * 8) / 6);
  return text.slice(first, last);
}

/** Prefixes of well-known keys. */
const PREFIXES = [
  'sk-',
  'rk_live_',
  'sk_live_',
  'ghp_',
  'gho_',
  'ghu_',
  'ghs_',
  'ghr_',
  'github_pat_',
  'glpat-',
  'xoxb-',
  'xoxp-',
  'xoxa-',
  'xoxs-',
  'AKIA',
  'ASIA',
  'AIza',
  'npm_',
  'hf_',
  'nvapi-',
];
/** The minimum number of characters after the prefix. */
const MIN_KEY_LENGTH = 16;

/** Redacts keys with a well-known prefix, JWTs, Authorization header values, and private keys in PEM. */
function withoutKeys(text: string): string {
  return withoutPem(text)
    .replaceAll(/\b([Bb]earer|[Bb]asic) [A-Za-z0-9_.~+/=-]{16,}/g, `$1 ${REDACTED}`)
    .replaceAll(/[A-Za-z0-9_.-]{16,}/g, withoutKeysInRun);
}

function withoutKeysInRun(run: string): string {
  const parts = run.split('.');
  for (const [index, part] of parts.entries()) {
    const token = startOf(part, 'eyJ', 8);
    if (token !== -1 && startOf(parts[index + 1] ?? '', 'eyJ', 8) === 0 && parts[index + 2] !== undefined) {
      parts.splice(index, 3, part.slice(0, token) + REDACTED, '', '');
      continue;
    }
    const keys = PREFIXES.map((prefix) => startOf(part, prefix, MIN_KEY_LENGTH + prefix.length)).filter(
      (at) => at !== -1,
    );
    if (keys.length > 0) parts[index] = part.slice(0, Math.min(...keys)) + REDACTED;
  }
  return parts.join('.').replaceAll(`${REDACTED}..`, REDACTED);
}

/** The index of a key with this prefix in the part, with at least `minLength` characters and not inside a word; -1 when there is none. */
function startOf(part: string, prefix: string, minLength: number): number {
  for (let at = part.indexOf(prefix); at !== -1 && part.length - at >= minLength; at = part.indexOf(prefix, at + 1)) {
    if (at === 0 || !isAlphanumeric(part.charCodeAt(at - 1))) return at;
  }
  return -1;
}

function isAlphanumeric(code: number): boolean {
  return (code >= 0x30 && code <= 0x39) || (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a);
}

function withoutPem(text: string): string {
  let clean = '';
  let from = 0;
  for (;;) {
    const begin = text.indexOf('-----BEGIN ', from);
    if (begin === -1) return clean + text.slice(from);
    const head = text.slice(begin, begin + 64);
    if (!head.includes('PRIVATE KEY-----')) {
      clean += text.slice(from, begin + 11);
      from = begin + 11;
      continue;
    }
    const end = text.indexOf('-----END ', begin);
    clean += text.slice(from, begin) + REDACTED;
    if (end === -1) return clean;
    const close = text.indexOf('-----', end + 9);
    if (close === -1) return clean;
    from = close + 5;
  }
}
