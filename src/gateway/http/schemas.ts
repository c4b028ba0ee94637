import { type Static, Type } from 'typebox';
import type { ErrorCode } from '../../lib/error-codes.ts';

export const closed = { additionalProperties: false } as const;

/** Limit of a message's text in characters; NATS has its own limit in bytes. */
export const TEXT_CHARACTERS = 100_000;

export function text(maxLength: number, description: string, minLength = 1) {
  return Type.String({ minLength, maxLength, description });
}

export const SessionId = Type.String({
  pattern: '^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$',
  description: 'Id of a session of an agent.',
});

export const AgentName = Type.String({
  pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
  maxLength: 63,
  description: 'Name of an Agent.',
});

export const DeliveryToken = Type.String({
  minLength: 1,
  maxLength: 4_096,
  description: 'The delivery token, as received with the delivery.',
});

/** Only the form of an error code. Handlers check whether the code exists, so that a new code changes no schema. */
export const Code = Type.Unsafe<ErrorCode>({
  type: 'string',
  pattern: '^TEMPER_[A-Z_]{1,60}$',
  description: 'An error code; see the error reference.',
});

/** The body of every error response. */
export const ErrorBodySchema = Type.Object(
  {
    error: Type.Object(
      {
        code: Code,
        message: Type.String({ description: 'For users; programs use the code.' }),
        retryAfterMs: Type.Optional(Type.Integer()),
      },
      closed,
    ),
  },
  { ...closed, $id: 'Error', description: 'The body of every error response.' },
);
const errorRef = Type.Unsafe<Static<typeof ErrorBodySchema>>({ $ref: 'Error#', description: 'Error.' });

export const POD_SECURITY = { security: [{ pod: [] }] };
export const USER_SECURITY = { security: [{ user: [] }] };

/** Error responses of every route. */
export const ERROR_RESPONSES = { '4xx': errorRef, '5xx': errorRef };
export const NoContent = Type.Null({ description: 'No change or message within the requested wait.' });
export const Done = Type.Null({ description: 'Done.' });
