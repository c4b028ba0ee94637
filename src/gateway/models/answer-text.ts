import type { ModelEvent } from '../../models/port.ts';

/** Longer answers are no answer to a tool. */
const MAX_CHARACTERS = 1_000_000;

/** The text of a model's answer, as it passes. */
export class AnswerText {
  #text = '';

  get value(): string {
    return this.#text;
  }

  async *collect(events: AsyncIterable<ModelEvent>): AsyncGenerator<ModelEvent> {
    for await (const event of events) {
      if (event.type === 'text' && this.#text.length < MAX_CHARACTERS) this.#text += event.text;
      yield event;
    }
  }
}
