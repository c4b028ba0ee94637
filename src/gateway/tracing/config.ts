import { type Static, Type } from 'typebox';

/** The `tracing` section: exporter of spans. Absent: tracing is off. */
export const TracingSection = Type.Object(
  {
    endpoint: Type.String({
      pattern: '^https?://[^\\s]+$',
      maxLength: 2_048,
      description: 'Full URL of the traces endpoint of an OTLP/HTTP collector.',
    }),
    ratio: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 1,
        description: 'Sampling ratio of traces that start in the gateway. Default 1.',
      }),
    ),
  },
  { additionalProperties: false },
);
export type TracingSection = Static<typeof TracingSection>;
