import { oneLine } from './visible-text.ts';

export interface PageLink {
  text: string;
  url: string;
}

const MAX_URL_CHARACTERS = 2_000;
const MAX_TEXT_CHARACTERS = 200;

/** The address of a link that an agent could fetch; undefined for every other one, such as `data:`, and for one to a part of the page. */
export function linkUrl(href: string | undefined, base: URL): string | undefined {
  const written = href?.trim() ?? '';
  if (written === '' || written.startsWith('#') || written.length > MAX_URL_CHARACTERS) return undefined;
  const url = URL.parse(written, base);
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) return undefined;
  if (url.username !== '' || url.password !== '' || url.href.length > MAX_URL_CHARACTERS) return undefined;
  return url.href;
}

export function pageLink(text: string, url: string): PageLink {
  return { text: oneLine(text).slice(0, MAX_TEXT_CHARACTERS), url };
}

/** The link in Markdown; brackets and parentheses do not end it early. */
export function markdownLink(text: string, url: string): string {
  const label = text.replaceAll(/[[\]\\]/g, String.raw`\$&`);
  return `[${label}](${url.replaceAll('(', '%28').replaceAll(')', '%29')})`;
}
