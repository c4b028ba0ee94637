import { Parser } from 'htmlparser2';
import type { PageLink } from './links.ts';
import { type PageBlock, type PageFormat, PageTooComplex, PageWriter } from './page-writer.ts';

export interface PageText {
  title: string;
  text: string;
  links: PageLink[];
  /** False when the page has more elements, depth or text than is read. */
  isComplete: boolean;
}

/** Text that an author marks as the content counts when it has at least this many characters. */
const MIN_CONTENT_CHARACTERS = 200;

/** The text of a page for a reader, of the part that is its content. Reads the page once, and keeps no tree of it. */
export function readHtml(html: string, url: URL, format: PageFormat): PageText {
  const writer = new PageWriter(format, url);
  const parser = new Parser({
    onopentag: (name, attributes) => writer.open(name, attributes),
    ontext: (text) => writer.text(text),
    onclosetag: (name) => writer.close(name),
  });
  const isComplete = parsed(parser, html);
  writer.end();
  const scopes = contentScopes(writer.blocks);
  const links = writer.links
    .filter(({ scope }) => scopes.has(scope))
    .map(({ text, url: target }) => ({ text, url: target }));
  return {
    title: writer.title,
    text: joined(writer.blocks.filter(({ scope }) => scopes.has(scope))),
    links,
    isComplete,
  };
}

function parsed(parser: Parser, html: string): boolean {
  try {
    parser.end(html);
    return true;
  } catch (error) {
    if (error instanceof PageTooComplex) return false;
    throw error;
  }
}

/** The innermost scope with enough text, or half of it: `main`, then `article`, then the page without navigation, then all of it. */
function contentScopes(blocks: readonly PageBlock[]): ReadonlySet<string> {
  const choices = [['Main'], ['Main', 'Article'], ['Main', 'Article', 'Body']];
  const whole = charactersOf(blocks);
  const found = choices.find((scopes) => {
    const characters = charactersOf(blocks.filter(({ scope }) => scopes.includes(scope)));
    return characters >= MIN_CONTENT_CHARACTERS || (characters > 0 && characters * 2 >= whole);
  });
  return new Set(found ?? ['Main', 'Article', 'Body', 'Around']);
}

function charactersOf(blocks: readonly PageBlock[]): number {
  return blocks.reduce((sum, { text }) => sum + text.length, 0);
}

function joined(blocks: readonly PageBlock[]): string {
  return blocks.map(({ text, isTight }, index) => `${index === 0 ? '' : isTight ? '\n' : '\n\n'}${text}`).join('');
}
