import { messageOf, TemperError } from '../lib/errors.ts';
import { startTracing, type Tracing } from '../telemetry/tracing.ts';
import type { CliIo } from './io.ts';

type Environment = CliIo['environment'];

/** The version of this software. */
export async function ownVersion(): Promise<string> {
  const { default: manifest } = await import('../../package.json', { with: { type: 'json' } });
  return manifest.version;
}

/** Traces a command of a person when OpenTelemetry's own variables name a collector. Throws TEMPER_USAGE for one that is no URL. */
export async function startCommandTracing(io: CliIo): Promise<Tracing> {
  const endpoint = traceEndpoint(io.environment);
  return startTracing({
    service: 'temper',
    version: endpoint === undefined ? '' : await ownVersion(),
    endpoint,
    failed: (problem) => io.error(`temper: spans could not be exported to ${endpoint}: ${messageOf(problem, 300)}\n`),
  });
}

/** `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` as it is, or `OTEL_EXPORTER_OTLP_ENDPOINT` with the path of traces. */
export function traceEndpoint(environment: Environment): string | undefined {
  if (environment['OTEL_SDK_DISABLED']?.toLowerCase() === 'true') return undefined;
  const [own, base] = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'].map((name) => {
    const value = environment[name] ?? '';
    if (value === '') return undefined;
    if (!/^https?:/.test(value) || !URL.canParse(value)) {
      throw new TemperError('TEMPER_USAGE', `${name} is no http or https URL; name an OTLP/HTTP collector or unset it`);
    }
    return value;
  });
  if (own !== undefined) return own;
  return base === undefined ? undefined : `${base.replace(/\/+$/, '')}/v1/traces`;
}
