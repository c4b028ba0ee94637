import { createInterface, type Interface } from 'node:readline';
import { StringDecoder } from 'node:string_decoder';
import { Transform } from 'node:stream';
import type { ReadStream, WriteStream } from 'node:tty';
import { onAbort } from '../../lib/async/abort.ts';
import type { Prompt, PromptOptions } from '../io.ts';
import { DISABLE_PASTE_MARKERS, ENABLE_PASTE_MARKERS, inOneLine, PasteFilter, withLineBreaks } from './paste-filter.ts';

const MAX_HISTORY = 1_000;

export interface TerminalStreams {
  input: ReadStream;
  output: WriteStream;
  /** Called for Ctrl-C, which a line editor receives instead of the process. */
  interrupt: () => void;
}

/**
 * A prompt with line editing, history and pastes of several lines. A line editor exists only during `read`: at other times the
 * terminal is in its normal mode, in which Ctrl-C interrupts the process.
 */
export function terminalPrompt(streams: TerminalStreams, options: PromptOptions): Prompt {
  return new TerminalPrompt(streams, options);
}

class TerminalPrompt implements Prompt {
  readonly #streams: TerminalStreams;
  readonly #options: PromptOptions;
  #history: string[];
  /** Complete lines that arrived with an earlier one. */
  readonly #typedAhead: string[] = [];

  constructor(streams: TerminalStreams, options: PromptOptions) {
    this.#streams = streams;
    this.#options = options;
    this.#history = options.history.map(inOneLine);
  }

  async read(question: string, { signal, remember = true }: { signal?: AbortSignal; remember?: boolean } = {}) {
    if (signal?.aborted === true) return undefined;
    const line = this.#typedAhead.shift() ?? (await this.#edit(question, signal, remember));
    if (line === undefined) return undefined;
    const text = withLineBreaks(line);
    if (remember && text !== '') this.#remember(line);
    return text;
  }

  async #edit(question: string, signal: AbortSignal | undefined, remember: boolean): Promise<string | undefined> {
    const { input, output, interrupt } = this.#streams;
    const source = pasteFiltered(input);
    const editor = createInterface({
      input: source,
      output,
      terminal: true,
      prompt: question,
      history: remember ? [...this.#history] : [],
      historySize: remember ? MAX_HISTORY : 0,
      removeHistoryDuplicates: true,
    });
    output.write(ENABLE_PASTE_MARKERS);
    try {
      return await this.#firstLine(editor, signal, interrupt);
    } finally {
      editor.close();
      input.unpipe(source);
      input.pause();
      output.write(DISABLE_PASTE_MARKERS);
    }
  }

  async #firstLine(
    editor: Interface,
    signal: AbortSignal | undefined,
    interrupt: () => void,
  ): Promise<string | undefined> {
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    let isRead = false;
    editor.on('line', (line) => {
      if (isRead) this.#typedAhead.push(line);
      isRead = true;
      resolve(line);
    });
    editor.on('SIGINT', interrupt);
    editor.on('close', () => {
      if (!isRead) this.#streams.output.write('\n');
      resolve(undefined);
    });
    using _cancellation = signal === undefined ? undefined : onAbort(signal, () => editor.close());
    editor.prompt();
    return await promise;
  }

  #remember(line: string): void {
    const others = this.#history.filter((earlier) => earlier !== line);
    this.#history = [line, ...others].slice(0, MAX_HISTORY);
    this.#options.onHistory(this.#history.map(withLineBreaks));
  }
}

/** The input of a terminal, with each paste on one line. */
function pasteFiltered(input: ReadStream): Transform & { setRawMode: (mode: boolean) => void } {
  const filter = new PasteFilter();
  const decoder = new StringDecoder('utf8');
  const transform = new Transform({
    decodeStrings: false,
    transform(chunk: Buffer | string, _encoding, done) {
      done(null, filter.push(typeof chunk === 'string' ? chunk : decoder.write(chunk)));
    },
  });
  input.pipe(transform);
  return Object.assign(transform, {
    setRawMode: (mode: boolean) => {
      input.setRawMode(mode);
    },
  });
}
