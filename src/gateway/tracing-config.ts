import { type Static, Type } from 'typebox';

/** Where spans go. Absent: nothing is traced. */
export const TracingSection = Type.Object(
  {
    endpoint: Type.String({
      pattern: '^https?://[^\\s]+$',
      maxLength: 2_048,
      description: 'Full URL of the traces endpoint of an OTLP/HTTP collector.',
    }),
    ratio: Type.Optional(
      Type.Number({ minimum: 0, maximum: 1, description: 'Share of traces begun here that are kept. Default 1.' }),
    ),
  },
  { additionalProperties: false },
);
export type TracingSection = Static<typeof TracingSection>;
