import type { Screen, Style, TranscriptScreen } from './screen.ts';

/** The screen of a transcript beside another one: whole lines, no streamed text and no status, so that neither disturbs the other. */
export class LinesBeside implements TranscriptScreen {
  readonly isLive = false;
  readonly paint: Screen['paint'];
  readonly #screen: Screen;

  constructor(screen: Screen) {
    this.#screen = screen;
    this.paint = screen.paint;
  }

  line(text: string, indent = 0): void {
    this.#screen.besideText(() => this.#screen.line(text, indent));
  }

  cutLine(prefix: string, text: string, style: Style): void {
    this.#screen.besideText(() => this.#screen.cutLine(prefix, text, style));
  }

  beginText(): void {
    // A transcript streams on a live screen only.
  }

  addText(): void {
    // As above.
  }

  endText(): void {
    // There is none.
  }

  showStatus(): void {
    // The status line belongs to the other transcript.
  }
}
