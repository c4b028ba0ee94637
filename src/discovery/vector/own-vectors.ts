import { abortedByTimeout, type CallOptions } from '../../lib/call-options.ts';
import type { Clock } from '../../lib/clock.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { isTemperError } from '../../lib/errors.ts';
import { compareText } from '../lexical/compare-text.ts';
import type { EntryText } from './entry-embedder.ts';
import { FailedTexts, isRefusal, type TextFailure } from './failed-texts.ts';
import type { VectorEntry } from './port.ts';
import type { QueryCaller, QueryEmbedder } from './query-embedder.ts';

/** Failures that a text of the request can cause; not those of a quota or a key. */
const BY_TEXT: ReadonlySet<ErrorCode> = new Set([
  'TEMPER_MODEL_OVERLOADED',
  'TEMPER_MODEL_FORMAT',
  'TEMPER_MODEL_TIMEOUT',
] satisfies ErrorCode[]);

/** The vectors of entries that belong to one agent, which pays for them. They are cached with its queries. */
export class OwnVectors {
  readonly #queries: QueryEmbedder;
  readonly #failed: FailedTexts;

  constructor(queries: QueryEmbedder, clock: Clock) {
    this.#queries = queries;
    this.#failed = new FailedTexts(clock);
  }

  /**
   * The vectors that there are at the deadline. One request follows another, in an order that depends on the texts alone; after a failure there is
   * no further one, and the next search sends smaller batches. Does not throw.
   */
  async of(texts: readonly EntryText[], caller: QueryCaller, op: CallOptions): Promise<VectorEntry[]> {
    const keyOf = ({ id }: EntryText): string => `${caller.id}/${id}`;
    let waiting = texts.toSorted((a, b) => compareText(a.id, b.id));
    const found: VectorEntry[] = [];
    for (;;) {
      const batch = op.signal.aborted ? [] : this.#failed.batchOf(waiting, keyOf);
      if (batch.length === 0) return found;
      const keys = batch.map(keyOf);
      try {
        const sent = batch.map(({ text }) => text);
        const vectors = await this.#queries.embed(sent, caller, op);
        found.push(...vectors.flatMap((vector, at) => entryVector(batch[at], vector)));
        this.#failed.succeeded(keys);
      } catch (error) {
        const failure = failureOf(error, op.signal);
        if (failure !== undefined) this.#failed.failed(keys, failure);
        return found;
      }
      waiting = waiting.filter((text) => !batch.includes(text));
    }
  }
}

function entryVector(text: EntryText | undefined, vector: Float32Array): VectorEntry[] {
  return text === undefined ? [] : [{ id: text.id, vector }];
}

/** Undefined for a failure that no text caused. */
function failureOf(error: unknown, signal: AbortSignal): TextFailure | undefined {
  if (isRefusal(error)) return 'Refused';
  const isByText = isTemperError(error) && BY_TEXT.has(error.code) && !signal.aborted;
  return isByText || abortedByTimeout(signal) ? 'Unclear' : undefined;
}
