import { TemperError } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';

/** A page names its encoding within its first bytes. */
const MAX_PRESCAN_BYTES = 1_024;
const META_CHARSET = /<meta[^>]{0,200}?charset\s{0,5}=\s{0,5}["']?([\w:.-]{1,40})/i;

/**
 * The text of a body. The encoding is that of its byte order mark, then of the content type, then of its `meta` element; otherwise UTF-8, or
 * windows-1252 for bytes that are not UTF-8. Throws TEMPER_WEB_CONTENT_UNSUPPORTED for an encoding that is not known.
 */
export function decodeText(bytes: Uint8Array, charset: string | undefined, isHtml: boolean): string {
  const named = markedEncoding(bytes) ?? charset ?? (isHtml ? metaCharset(bytes) : undefined);
  if (named !== undefined) return decoder(named).decode(bytes);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder('windows-1252').decode(bytes);
  }
}

function markedEncoding([first, second, third]: Uint8Array): string | undefined {
  if (first === 0xef && second === 0xbb && third === 0xbf) return 'utf-8';
  if (first === 0xfe && second === 0xff) return 'utf-16be';
  return first === 0xff && second === 0xfe ? 'utf-16le' : undefined;
}

function metaCharset(bytes: Uint8Array): string | undefined {
  const start = new TextDecoder('windows-1252').decode(bytes.subarray(0, MAX_PRESCAN_BYTES));
  const name = META_CHARSET.exec(start)?.[1];
  // The bytes were read as ASCII, so the page is not in UTF-16.
  return name !== undefined && /^utf-16/i.test(name) ? 'utf-8' : name;
}

function decoder(label: string): TextDecoder {
  try {
    return new TextDecoder(label);
  } catch (cause) {
    throw new TemperError(
      'TEMPER_WEB_CONTENT_UNSUPPORTED',
      `the response is in the encoding "${printable(label, 60)}", which is not supported`,
      { cause },
    );
  }
}
