/** Stands for a line break inside pasted text, until the whole input is read. */
const LINE_BREAK_MARK = '␤';

const PASTE_START = '\u001b[200~';
const PASTE_END = '\u001b[201~';
/** A shorter start of a marker is passed on: it may be the Escape key. */
const MIN_PARTIAL = 3;

/** Ask a terminal to mark pasted text, and to stop marking it. */
export const ENABLE_PASTE_MARKERS = '\u001b[?2004h';
export const DISABLE_PASTE_MARKERS = '\u001b[?2004l';

/**
 * Turns each paste into text of one line, so that a paste of several lines becomes one message: line breaks are replaced by a
 * visible mark, and control characters, which a line editor would take for keys, are removed.
 */
export class PasteFilter {
  #isPasting = false;
  #held = '';

  push(input: string): string {
    let rest = this.#held + input;
    this.#held = '';
    let out = '';
    for (;;) {
      const marker = this.#isPasting ? PASTE_END : PASTE_START;
      const at = rest.indexOf(marker);
      if (at < 0) break;
      out += this.#passed(rest.slice(0, at));
      this.#isPasting = !this.#isPasting;
      rest = rest.slice(at + marker.length);
    }
    const partial = partialLength(rest, this.#isPasting ? PASTE_END : PASTE_START);
    this.#held = rest.slice(rest.length - partial);
    return out + this.#passed(rest.slice(0, rest.length - partial));
  }

  #passed(text: string): string {
    return this.#isPasting ? inOneLine(text) : text;
  }
}

/** The text as the user pasted it. */
export function withLineBreaks(line: string): string {
  return line.replaceAll(LINE_BREAK_MARK, '\n').trimEnd();
}

/** The opposite: a text of several lines as one line, as the history of a line editor needs it. */
export function inOneLine(text: string): string {
  return (
    text
      .replaceAll(/\r\n?|\n/g, LINE_BREAK_MARK)
      .replaceAll('\t', '    ')
      // oxlint-disable-next-line no-control-regex -- removes control characters
      .replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, '')
  );
}

/** The length of the longest end of `text` that starts the marker. */
function partialLength(text: string, marker: string): number {
  for (let length = Math.min(marker.length - 1, text.length); length >= MIN_PARTIAL; length -= 1) {
    if (text.endsWith(marker.slice(0, length))) return length;
  }
  return 0;
}
