import type { PageFormat } from '../html/page-writer.ts';
import { type PageText, readHtml } from '../html/read-html.ts';
import { visibleText } from '../html/visible-text.ts';
import { decodeText } from './charset.ts';
import type { Content } from './content.ts';

export interface ResponseBody {
  bytes: Uint8Array;
  content: Content;
  /** The address of the response, for the links of the page. */
  url: string;
  format: PageFormat;
}

const MAX_TEXT_CHARACTERS = 1_000_000;

/** The text of a response. Only HTML is converted. Throws TEMPER_WEB_CONTENT_UNSUPPORTED. */
export function extractPage({ bytes, content, url, format }: ResponseBody): PageText {
  const text = decodeText(bytes, content.charset, content.isHtml);
  if (content.isHtml) return readHtml(text, new URL(url), format);
  const visible = visibleText(text);
  const isComplete = visible.length <= MAX_TEXT_CHARACTERS;
  return { title: '', text: isComplete ? visible : visible.slice(0, MAX_TEXT_CHARACTERS), links: [], isComplete };
}
