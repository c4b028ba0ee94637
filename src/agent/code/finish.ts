import type { Json } from '../../lib/json.ts';

/** The verdict on a value that code finished with: the reply of the message, or what is wrong with the value. */
export type FinishVerdict = { accepted: true; reply: string } | { accepted: false; problem: string };

/** Decides about the value of `ctx.manager.finish`. */
export type FinishSink = (value: Json) => FinishVerdict;

/** Accepts every value: a text is the reply as it is, other values are JSON. */
export const acceptAnyValue: FinishSink = (value) => ({
  accepted: true,
  reply: typeof value === 'string' ? value : JSON.stringify(value),
});
