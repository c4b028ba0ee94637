import { graphemes, isWide, styledWidth } from './styled-text.ts';

/** A space at which a line must not break; printed as a space. */
export const KEEP_TOGETHER = '\u00a0';

/** At least this many columns remain for text, however deep the indentation is. */
const MIN_TEXT_COLUMNS = 16;

/**
 * Breaks text into lines of at most `columns`, and indents each line after the first, so that wrapped text stays aligned. Without
 * `columns` no line is broken. Breaks at spaces, beside wide characters, and inside a word that is longer than a line.
 */
export function wrap(text: string, columns: number | undefined, indent = 0): string {
  if (columns === undefined) return text.replaceAll(KEEP_TOGETHER, ' ');
  const wrapper = new Wrapper(columns, indent);
  const lines = text.split('\n').map((line) => {
    wrapper.restart();
    return wrapper.add(line);
  });
  return lines.join('\n').replaceAll(KEEP_TOGETHER, ' ');
}

/** Wraps text that arrives in pieces. A piece must end at a place where a line may break. */
export class Wrapper {
  readonly #columns: number;
  readonly #indent: string;
  #column = 0;
  /** Indentation that is printed when text follows on the line. */
  #margin = '';
  /** Spaces that are printed only when a word follows on the same line. */
  #spaces = '';

  constructor(columns: number, indent: number) {
    this.#columns = columns;
    this.#indent = ' '.repeat(Math.max(0, Math.min(indent, columns - MIN_TEXT_COLUMNS)));
  }

  restart(): void {
    this.#column = 0;
    this.#margin = '';
    this.#spaces = '';
  }

  /** The text to print for the next piece of a line. */
  add(piece: string): string {
    let out = '';
    for (const part of piece.split(/( +)/)) {
      if (part === '') continue;
      if (part.startsWith(' ')) this.#spaces += part;
      else for (const unit of unitsOf(part)) out += this.#unit(unit);
    }
    return out;
  }

  /** Starts the next line, indented when a word follows. */
  lineBreak(): string {
    this.#column = 0;
    this.#margin = this.#indent;
    this.#spaces = '';
    return '\n';
  }

  #unit(unit: string): string {
    const width = styledWidth(unit);
    if (this.#column === 0 || this.#column + this.#spaces.length + width <= this.#columns) {
      return this.#leadIn() + this.#place(unit, width);
    }
    return this.lineBreak() + this.#leadIn() + this.#place(unit, width);
  }

  /** The margin and the spaces before the next word. */
  #leadIn(): string {
    const out = this.#margin + this.#spaces;
    this.#margin = '';
    this.#spaces = '';
    this.#column += out.length;
    return out;
  }

  /** Prints a unit; breaks it when it is longer than the rest of the line. */
  #place(unit: string, width: number): string {
    if (this.#column + width <= this.#columns || width === 0) {
      this.#column += width;
      return unit;
    }
    let out = '';
    for (const cluster of splitStyled(unit)) {
      const clusterWidth = styledWidth(cluster);
      if (clusterWidth > 0 && this.#column + clusterWidth > this.#columns) out += this.lineBreak() + this.#leadIn();
      this.#column += clusterWidth;
      out += cluster;
    }
    return out;
  }
}

// oxlint-disable-next-line no-control-regex -- colour sequences of this program start with ESC
const STYLE = /(\u001b\[[0-9;]*m)/;

/** Grapheme clusters, with each colour sequence as an element of its own. */
function splitStyled(text: string): string[] {
  return text.split(STYLE).flatMap((part) => (part.startsWith('\u001b') ? [part] : graphemes(part)));
}

/** The parts of a word between which a line may break: CJK text breaks between any two wide characters. */
function unitsOf(word: string): string[] {
  // oxlint-disable-next-line no-control-regex -- printable ASCII and colour sequences
  if (/^[\u001b\u0020-\u007e]*$/.test(word)) return [word];
  const units: string[] = [];
  let current = '';
  for (const cluster of splitStyled(word)) {
    if (!isWide(cluster)) current += cluster;
    else {
      // A colour sequence stays with the text after it, so that no line ends with it.
      if (styledWidth(current) === 0) units.push(current + cluster);
      else units.push(current, cluster);
      current = '';
    }
  }
  return current === '' ? units : [...units, current];
}
