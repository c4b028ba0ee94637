/** What a response contains, by its content type. */
import { TemperError } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';

export interface Content {
  /** Without parameters, in lower case. */
  type: string;
  isHtml: boolean;
  /** The `charset` parameter. */
  charset?: string;
}

const HTML: ReadonlySet<string> = new Set(['text/html', 'application/xhtml+xml']);
const TEXT: ReadonlySet<string> = new Set([
  'application/json',
  'application/xml',
  'application/yaml',
  'application/x-yaml',
  'application/toml',
  'application/x-ndjson',
  'application/javascript',
]);
const NAMED: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/^application\/pdf$/, 'a PDF document'],
  [/^image\//, 'an image'],
  [/^audio\//, 'audio'],
  [/^video\//, 'a video'],
  [/^font\//, 'a font'],
  [/^application\/(?:zip|gzip|x-tar|x-7z-compressed|x-bzip2|zstd)$/, 'an archive'],
];

/** Throws TEMPER_WEB_CONTENT_UNSUPPORTED for content that is not text. */
export function contentOf(header: string | undefined): Content {
  const [first = '', ...parameters] = (header ?? '').slice(0, 1_000).split(';');
  const type = first.trim().toLowerCase();
  const isHtml = HTML.has(type);
  const isText =
    isHtml || type.startsWith('text/') || TEXT.has(type) || /^application\/[a-z0-9.-]{1,80}\+(?:json|xml)$/.test(type);
  if (!isText) throw unsupported(type);
  const charset = parameters.map((text) => /^\s*charset\s*=\s*"?([\w:.-]{1,40})"?\s*$/i.exec(text)?.[1]).find(Boolean);
  return { type, isHtml, ...(charset === undefined ? {} : { charset }) };
}

function unsupported(type: string): TemperError {
  const name = NAMED.find(([pattern]) => pattern.test(type))?.[1];
  const found =
    type === '' ? 'content without a type' : `${name === undefined ? '' : `${name}, `}${printable(type, 100)}`;
  return new TemperError(
    'TEMPER_WEB_CONTENT_UNSUPPORTED',
    `the response is ${found}; web_fetch reads HTML, text, Markdown, JSON and XML`,
  );
}
