/** URL. The text of these functions and classes runs in the guest; see web-globals.ts. */
import { percentEncode, PERCENT_ENCODING_PARTS } from './url-encoding.ts';
import { noInternationalNames, parseHost, URL_HOST_PARTS } from './url-host.ts';
import {
  defaultPort,
  encodeQuery,
  isSpecialScheme,
  parsePathStart,
  parsePort,
  parseUrl,
  serializePath,
  serializeUrl,
  URL_PARSER_PARTS,
  type UrlRecord,
} from './url-parser.ts';
import { GuestSearchParams, SEARCH_PARAMS_PARTS } from './url-search-params.ts';
import { UTF8_PARTS } from './utf8.ts';

export class GuestUrl {
  #url: UrlRecord;
  readonly #search: ReturnType<typeof GuestSearchParams.attach>;

  constructor(input: unknown, ...bases: unknown[]) {
    const [base] = bases.map(String);
    const isAlone = bases[0] === undefined;
    this.#url = parseUrl(String(input), isAlone ? undefined : parseUrl(base ?? '', undefined));
    this.#search = GuestSearchParams.attach((text) => {
      this.#url.query = text === '' ? null : text;
    });
    this.#search.replace(this.#url.query ?? '');
  }

  static canParse(input: unknown, base?: unknown): boolean {
    return GuestUrl.parse(input, base) !== null;
  }

  static parse(input: unknown, base?: unknown): GuestUrl | null {
    try {
      return new GuestUrl(input, base);
    } catch (error) {
      if ((error as { message?: string }).message === noInternationalNames()) throw error;
      return null;
    }
  }

  get href(): string {
    return serializeUrl(this.#url);
  }

  set href(value: unknown) {
    this.#url = parseUrl(String(value), undefined);
    this.#search.replace(this.#url.query ?? '');
  }

  get origin(): string {
    const { scheme, path } = this.#url;
    if (scheme === 'blob') return blobOrigin(typeof path === 'string' ? path : '');
    return defaultPort(scheme) === null ? 'null' : `${scheme}://${this.host}`;
  }

  get protocol(): string {
    return `${this.#url.scheme}:`;
  }

  set protocol(value: unknown) {
    const scheme = /^([A-Za-z][A-Za-z\d+.-]*)(?::|$)/.exec(String(value))?.[1]?.toLowerCase();
    const url = this.#url;
    if (scheme === undefined || isSpecialScheme(scheme) !== isSpecialScheme(url.scheme)) return;
    if (scheme === 'file' && (url.username !== '' || url.password !== '' || url.port !== null)) return;
    if (url.scheme === 'file' && url.host === '') return;
    url.scheme = scheme;
    if (url.port === defaultPort(scheme)) url.port = null;
  }

  get username(): string {
    return this.#url.username;
  }

  set username(value: unknown) {
    if (this.#mayHaveUser()) this.#url.username = percentEncode(String(value), 'userinfo');
  }

  get password(): string {
    return this.#url.password;
  }

  set password(value: unknown) {
    if (this.#mayHaveUser()) this.#url.password = percentEncode(String(value), 'userinfo');
  }

  get host(): string {
    const { host, port } = this.#url;
    return `${host ?? ''}${port === null ? '' : `:${port}`}`;
  }

  set host(value: unknown) {
    this.#setHost(String(value), true);
  }

  get hostname(): string {
    return this.#url.host ?? '';
  }

  set hostname(value: unknown) {
    this.#setHost(String(value), false);
  }

  get port(): string {
    return this.#url.port === null ? '' : String(this.#url.port);
  }

  set port(value: unknown) {
    const text = String(value).replaceAll(/[\t\n\r]/g, '');
    const digits = /^\d*/.exec(text)?.[0] ?? '';
    if (!this.#mayHaveUser() || (digits === '' && text !== '') || Number(digits) > 65_535) return;
    this.#url.port = parsePort(digits, this.#url.scheme);
  }

  get pathname(): string {
    return serializePath(this.#url);
  }

  set pathname(value: unknown) {
    if (typeof this.#url.path === 'string') return;
    const text = String(value)
      .replaceAll(/[\t\n\r]/g, '')
      .replaceAll('?', '%3F')
      .replaceAll('#', '%23');
    this.#url.path = [];
    if (text === '' && this.#url.host === null) this.#url.path = [''];
    else parsePathStart(this.#url, text);
  }

  get search(): string {
    const { query } = this.#url;
    return query === null || query === '' ? '' : `?${query}`;
  }

  set search(value: unknown) {
    const text = String(value)
      .replaceAll(/[\t\n\r]/g, '')
      .replace(/^\?/, '');
    this.#url.query = String(value) === '' ? null : encodeQuery(text, this.#url.scheme);
    this.#search.replace(this.#url.query ?? '');
  }

  get searchParams(): GuestSearchParams {
    return this.#search.params;
  }

  get hash(): string {
    const { fragment } = this.#url;
    return fragment === null || fragment === '' ? '' : `#${fragment}`;
  }

  set hash(value: unknown) {
    const text = String(value)
      .replaceAll(/[\t\n\r]/g, '')
      .replace(/^#/, '');
    this.#url.fragment = String(value) === '' ? null : percentEncode(text, 'fragment');
  }

  toString(): string {
    return this.href;
  }

  toJSON(): string {
    return this.href;
  }

  get [Symbol.toStringTag](): string {
    return 'URL';
  }

  #mayHaveUser(): boolean {
    const { host, scheme } = this.#url;
    return host !== null && host !== '' && scheme !== 'file';
  }

  #setHost(value: string, withPort: boolean): void {
    const url = this.#url;
    const { host, port, isWhole } = readAddress(value, url.scheme);
    if (typeof url.path === 'string' || (!withPort && !isWhole)) return;
    if (host === '' && (!isWhole || !mayHaveEmptyHost(url))) return;
    try {
      const parsed = host === '' ? '' : parseHost(host, isSpecialScheme(url.scheme));
      url.host = url.scheme === 'file' && parsed === 'localhost' ? '' : parsed;
    } catch (error) {
      if ((error as Error).message === noInternationalNames()) throw error;
      return;
    }
    if (port !== '') this.port = port;
  }
}

/** The host and the port at the beginning of a text; `isWhole`: the host is all of it. */
function readAddress(value: string, scheme: string): { host: string; port: string; isWhole: boolean } {
  const text = value.replaceAll(/[\t\n\r]/g, '');
  const end = text.search(isSpecialScheme(scheme) ? /[/\\?#]/ : /[/?#]/);
  const address = end === -1 ? text : text.slice(0, end);
  const parts = (scheme === 'file' ? /^(.*)$/ : /^(\[[^\]]*\]|[^:]*)(?::(\d*))?/).exec(address);
  const host = parts?.[1] ?? '';
  return { host, port: parts?.[2] ?? '', isWhole: host === address };
}

function mayHaveEmptyHost({ scheme, username, password, port }: UrlRecord): boolean {
  if (isSpecialScheme(scheme)) return scheme === 'file';
  return username === '' && password === '' && port === null;
}

function blobOrigin(path: string): string {
  const inner = GuestUrl.parse(path);
  return inner !== null && (inner.protocol === 'http:' || inner.protocol === 'https:') ? inner.origin : 'null';
}

export function exportUrl(): Record<string, unknown> {
  return { URL: GuestUrl, URLSearchParams: GuestSearchParams };
}

/** Everything that URL needs, for the guest. */
export const URL_PARTS = [
  ...UTF8_PARTS,
  ...PERCENT_ENCODING_PARTS,
  ...URL_HOST_PARTS,
  ...URL_PARSER_PARTS,
  ...SEARCH_PARAMS_PARTS,
  GuestUrl,
  readAddress,
  mayHaveEmptyHost,
  blobOrigin,
  exportUrl,
];
