/**
 * A review page before it is rendered. Two kinds of text never mix: a plain string is a text of this module, and everything else is
 * foreign, which renderers put into a box (inline or of lines) that the foreign text cannot leave.
 */
export interface ForeignText {
  readonly foreign: string;
}

export type Inline = string | ForeignText;

export type SpanKind = 'plain' | 'keyword' | 'string' | 'number' | 'comment' | 'escape' | 'added' | 'removed';

export interface Span {
  readonly kind: SpanKind;
  /** Visible text without line breaks. */
  readonly text: string;
}

/** One line of a box. The gutter is a text of this module: a line number, or a sign that no foreign line can start with. */
export interface BoxLine {
  readonly gutter: string;
  readonly spans: readonly Span[];
  /** The line is a remark of this module. */
  readonly isRemark?: boolean;
  readonly isCited?: boolean;
}

export interface Box {
  readonly type: 'box';
  readonly language: 'js' | 'json' | 'text' | 'diff';
  readonly lines: readonly BoxLine[];
}

export type Block =
  | { readonly type: 'heading'; readonly level: 1 | 2 | 3; readonly text: readonly Inline[] }
  | { readonly type: 'paragraph' | 'warning'; readonly text: readonly Inline[] }
  | { readonly type: 'list'; readonly items: readonly (readonly Inline[])[] }
  | { readonly type: 'facts'; readonly rows: readonly (readonly [label: string, value: readonly Inline[]])[] }
  | Box;

export type ReviewDocument = readonly Block[];

export function foreign(text: string): ForeignText {
  return { foreign: text };
}

export function heading(level: 1 | 2 | 3, ...text: Inline[]): Block {
  return { type: 'heading', level, text };
}

export function paragraph(...text: Inline[]): Block {
  return { type: 'paragraph', text };
}

export function warning(...text: Inline[]): Block {
  return { type: 'warning', text };
}

/** Foreign names, separated by commas. */
export function foreignList(names: readonly string[], none: string): Inline[] {
  if (names.length === 0) return [none];
  return names.flatMap((name, index): Inline[] => (index === 0 ? [foreign(name)] : [', ', foreign(name)]));
}
