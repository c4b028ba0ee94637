import { Type } from 'typebox';

/** Request header: the delivery token of a call whose body does not have it. */
export const DELIVERY_TOKEN_HEADER = 'temper-delivery-token';
/** Response header of a call that a composed tool may make: the signature of its answer. */
export const ANSWER_SIGNATURE_HEADER = 'temper-answer-signature';

export const AnswerSignature = Type.String({
  pattern: '^a1\\.[A-Za-z0-9_-]{43}$',
  description: 'The signature of an answer that a gateway carried, for the recording of the tool that got it.',
});
