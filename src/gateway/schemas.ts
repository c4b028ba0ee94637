import { type Static, Type } from 'typebox';
import type { ErrorCode } from '../lib/error-codes.ts';

export const closed = { additionalProperties: false } as const;

/** Characters of a message's text; the bus has its own limit in bytes. */
export const TEXT_CHARACTERS = 100_000;

export function text(maxLength: number, description: string, minLength = 1) {
  return Type.String({ minLength, maxLength, description });
}

export const SessionId = Type.String({
  pattern: '^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$',
  description: 'Names a session of an agent.',
});

export const AgentName = Type.String({
  pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
  maxLength: 63,
  description: 'Name of an Agent.',
});

export const Lease = Type.String({ minLength: 1, maxLength: 4_096, description: 'As it came with the delivery.' });

/** The form of one. Whether there is such a code is asked where it matters, so that a new one changes no schema. */
export const Code = Type.Unsafe<ErrorCode>({
  type: 'string',
  pattern: '^TEMPER_[A-Z_]{1,60}$',
  description: 'An error code; see the error reference.',
});

/** What every refusal looks like. */
export const Refused = Type.Object(
  {
    error: Type.Object(
      {
        code: Code,
        message: Type.String({ description: 'For people; decide by the code.' }),
        retryAfterMilliseconds: Type.Optional(Type.Integer()),
      },
      closed,
    ),
  },
  { ...closed, $id: 'Refused', description: 'What every refusal looks like.' },
);
const refused = Type.Unsafe<Static<typeof Refused>>({ $ref: 'Refused#', description: 'Refused.' });

export const POD = { security: [{ pod: [] }] };
export const PERSON = { security: [{ person: [] }] };

/** Statuses every route has. */
export const REFUSALS = { '4xx': refused, '5xx': refused };
export const Nothing = Type.Null({ description: 'Nothing came in the time asked for.' });
export const Done = Type.Null({ description: 'Done.' });
