import { type Attributes, headingLevel, isBlock, isDropped, type Scope, scopeOf } from './elements.ts';
import { linkUrl, markdownLink, type PageLink, pageLink } from './links.ts';
import { Table } from './table.ts';
import { oneLine, visibleText } from './visible-text.ts';

export type PageFormat = 'markdown' | 'text';

/** A paragraph, a heading, an item of a list, a table or a block of code. */
export interface PageBlock {
  text: string;
  scope: Scope;
  /** No empty line between it and the block before. */
  isTight: boolean;
}

interface Item {
  marker: string;
  isMarked: boolean;
}

/** An open element, with what holds for its content. */
interface Frame {
  name: string;
  isDropped: boolean;
  scope: Scope;
  isCode: boolean;
  heading: number;
  quotes: number;
  lists: number;
  item: Item | undefined;
  /** Of a list: the number of its last item; undefined for one without numbers. */
  count: { last: number } | undefined;
  /** Where the text of a link or of inline code begins, and the address. */
  inline: { start: number; url?: string } | undefined;
}

export class PageTooComplex extends Error {}

const LIMITS = { nodes: 300_000, depth: 400, characters: 1_000_000, links: 1_000, title: 300, indent: 8, quotes: 5 };

/** Turns the elements and texts of a page, in their order, into blocks of text. Throws `PageTooComplex` beyond its limits. */
export class PageWriter {
  readonly blocks: PageBlock[] = [];
  readonly links: (PageLink & { scope: Scope })[] = [];
  readonly #format: PageFormat;
  readonly #frames: Frame[] = [];
  #base: URL;
  #hasBase = false;
  #title = '';
  /** The first title of a page counts. */
  #hasTitle = false;
  #inline: string[] = [];
  /** Within a link or inline code. */
  #isInline = false;
  #table: Table | undefined;
  #nodes = 0;
  #characters = 0;

  constructor(format: PageFormat, base: URL) {
    this.#format = format;
    this.#base = base;
  }

  get title(): string {
    return oneLine(this.#title).slice(0, LIMITS.title);
  }

  open(name: string, attributes: Attributes): void {
    this.#countNode();
    if (name === 'base') this.#setBase(attributes['href']);
    const outer = this.#top();
    const isVisible = !outer.isDropped && !isDropped(name, attributes);
    if (isVisible) this.#before(name, outer);
    this.#frames.push({ ...frameOf(name, attributes, outer), isDropped: !isVisible });
    if (this.#frames.length > LIMITS.depth) throw new PageTooComplex();
    if (isVisible) this.#opened(name, attributes);
  }

  text(text: string): void {
    this.#countNode();
    const frame = this.#top();
    if (frame.name === 'title' && !this.#hasTitle && this.#title.length < LIMITS.characters) this.#title += text;
    if (frame.isDropped) return;
    this.#characters += text.length;
    if (this.#characters > LIMITS.characters) throw new PageTooComplex();
    this.#inline.push(frame.isCode ? text : text.replaceAll(/\s+/g, ' '));
  }

  close(name: string): void {
    const frame = this.#top();
    if (frame.name !== name) return;
    if (name === 'title' && this.#title !== '') this.#hasTitle = true;
    if (!frame.isDropped) this.#closing(frame);
    this.#frames.pop();
  }

  end(): void {
    this.#flush();
    this.#endTable();
  }

  #before(name: string, outer: Frame): void {
    // A table inside another one: the outer one places blocks on the page, and its cells are not data.
    if (name === 'table') this.#endTable();
    const startsBlock = isBlock(name) || headingLevel(name) !== undefined || ['pre', 'table', 'hr'].includes(name);
    if (startsBlock) this.#breakBlock(outer);
    if (name === 'table') this.#table = new Table();
    if (name === 'tr') this.#table?.startRow();
    if ((name === 'td' || name === 'th' || name === 'tr') && this.#table === undefined) this.#breakBlock(outer);
  }

  #opened(name: string, { href }: Attributes): void {
    const frame = this.#top();
    if (name === 'br') this.#inline.push('\n');
    if (name === 'hr') this.#add('---', frame);
    // One within another is part of its text.
    if (this.#isInline) return;
    if (name === 'a') frame.inline = { start: this.#inline.length, ...urlOf(linkUrl(href, this.#base)) };
    if (name === 'code' && !frame.isCode) frame.inline = { start: this.#inline.length };
    this.#isInline = frame.inline !== undefined;
  }

  #closing(frame: Frame): void {
    const { name } = frame;
    if (frame.inline !== undefined) this.#endInline(frame.inline, frame);
    if (name === 'td' || name === 'th') this.#endCell(frame);
    else if (name === 'tr') this.#table?.endRow();
    else if (name === 'table') this.#endTable();
    else if (name === 'pre') this.#flush();
    else if (isBlock(name) || frame.heading > 0) this.#breakBlock(frame);
  }

  /** The end of a paragraph; inside a table or code, a space or a line. */
  #breakBlock({ isCode }: Frame): void {
    if (isCode) this.#inline.push('\n');
    else if (this.#table !== undefined) this.#inline.push(' ');
    else this.#flush();
  }

  #endInline({ start, url }: { start: number; url?: string }, { name, scope, isCode }: Frame): void {
    this.#isInline = false;
    const text = oneLine(this.#inline.slice(start).join(''));
    if (text === '') return;
    if (url !== undefined && this.links.length < LIMITS.links) this.links.push({ ...pageLink(text, url), scope });
    if (this.#format === 'text' || isCode) return;
    if (url !== undefined) this.#inline.splice(start, Infinity, markdownLink(text, url));
    if (name === 'code') this.#inline.splice(start, Infinity, inlineCode(text));
  }

  #endCell(frame: Frame): void {
    if (this.#table === undefined) return this.#breakBlock(frame);
    this.#table.addCell(this.#takeInline().replaceAll('\n', ' '));
  }

  #endTable(): void {
    const table = this.#table;
    if (table === undefined) return;
    const rest = this.#takeInline();
    this.#table = undefined;
    const lines = table.lines(this.#format);
    if (lines.length > 0) this.#add(lines.join('\n'), this.#top());
    if (rest !== '') this.#add(rest, this.#top());
  }

  #flush(): void {
    const frame = this.#top();
    if (frame.isCode) {
      const code = visibleText(this.#inline.join('')).replace(/^\n/, '').trimEnd();
      this.#inline = [];
      if (code !== '') this.#add(this.#format === 'text' ? code : fenced(code), frame);
      return;
    }
    const text = this.#takeInline();
    if (text !== '') this.#add(text, frame);
  }

  #takeInline(): string {
    const text = visibleText(this.#inline.join(''));
    this.#inline = [];
    return text
      .replaceAll(/ {2,}/g, ' ')
      .replaceAll(/ ?\n ?/g, '\n')
      .trim();
  }

  /** Adds a block with its heading, indentation and marks of quotation. */
  #add(text: string, { scope, heading, quotes, lists, item }: Frame): void {
    const isMarkdown = this.#format === 'markdown';
    const depth = Math.min(lists, LIMITS.indent);
    const isFirst = item !== undefined && !item.isMarked;
    if (item !== undefined) item.isMarked = true;
    const title = isMarkdown && heading > 0 ? `${'#'.repeat(heading)} ${text.replaceAll('\n', ' ')}` : text;
    const indent = '  '.repeat(isFirst ? Math.max(0, depth - 1) : depth);
    const lines = title.split('\n').map((line, index) => {
      const start = isFirst ? (index === 0 ? item.marker : '  ') : '';
      return `${isMarkdown ? '> '.repeat(Math.min(quotes, LIMITS.quotes)) : ''}${indent}${start}${line}`;
    });
    this.blocks.push({ text: lines.join('\n'), scope, isTight: isFirst });
  }

  #countNode(): void {
    this.#nodes += 1;
    if (this.#nodes > LIMITS.nodes) throw new PageTooComplex();
  }

  #setBase(href: string | undefined): void {
    const url = this.#hasBase ? undefined : linkUrl(href, this.#base);
    if (url === undefined) return;
    this.#base = new URL(url);
    this.#hasBase = true;
  }

  #top(): Frame {
    return this.#frames.at(-1) ?? ROOT;
  }
}

const ROOT: Frame = {
  name: '',
  isDropped: false,
  scope: 'Body',
  isCode: false,
  heading: 0,
  quotes: 0,
  lists: 0,
  item: undefined,
  count: undefined,
  inline: undefined,
};

function frameOf(name: string, attributes: Attributes, outer: Frame): Frame {
  const isList = name === 'ul' || name === 'ol' || name === 'menu';
  return {
    ...outer,
    name,
    scope: scopeOf(name, attributes, outer.scope),
    isCode: outer.isCode || name === 'pre',
    heading: headingLevel(name) ?? outer.heading,
    quotes: outer.quotes + (name === 'blockquote' ? 1 : 0),
    lists: outer.lists + (isList ? 1 : 0),
    item: name === 'li' ? { marker: markerOf(outer), isMarked: false } : outer.item,
    count: isList ? (name === 'ol' ? { last: 0 } : undefined) : outer.count,
    inline: undefined,
  };
}

function markerOf({ count }: Frame): string {
  if (count === undefined) return '- ';
  count.last += 1;
  return `${count.last}. `;
}

function urlOf(url: string | undefined): { url?: string } {
  return url === undefined ? {} : { url };
}

function inlineCode(text: string): string {
  const fence = '`'.repeat(longestRun(text) + 1);
  return longestRun(text) === 0 ? `${fence}${text}${fence}` : `${fence} ${text} ${fence}`;
}

function fenced(code: string): string {
  const fence = '`'.repeat(Math.max(3, longestRun(code) + 1));
  return `${fence}\n${code}\n${fence}`;
}

/** Of backticks. */
function longestRun(text: string): number {
  return (text.match(/`+/g) ?? []).reduce((longest, run) => Math.max(longest, run.length), 0);
}
