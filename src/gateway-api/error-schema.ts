import { type Static, Type } from 'typebox';
import { closed } from '../api/v1alpha1/common.ts';
import { Code } from '../tools/event-schema/parts.ts';

/** The body of every error response. */
export const ErrorBody = Type.Object(
  {
    error: Type.Object(
      {
        code: Code,
        message: Type.String({ description: 'For users; programs use the code.' }),
        retryAfterMs: Type.Optional(
          Type.Integer({ description: 'Milliseconds before a repeated request may succeed.' }),
        ),
      },
      closed,
    ),
  },
  { ...closed, $id: 'Error', description: 'The body of every error response.' },
);
export type ErrorBody = Static<typeof ErrorBody>;
