import { messageOf, TemperError } from '../lib/errors.ts';
import { startTracing, type Tracing } from '../telemetry/tracing.ts';
import type { CliIo } from './io.ts';

type EnvironmentVariables = CliIo['environment'];

/** The version in package.json. */
export async function packageVersion(): Promise<string> {
  const { default: manifest } = await import('../../package.json', { with: { type: 'json' } });
  return manifest.version;
}

/** Starts tracing of a command when the standard OpenTelemetry variables name a collector. Throws TEMPER_USAGE for an invalid URL. */
export async function startCommandTracing(io: CliIo): Promise<Tracing> {
  const endpoint = traceEndpoint(io.environment);
  return startTracing({
    service: 'temper',
    version: endpoint === undefined ? '' : await packageVersion(),
    endpoint,
    onExportError: (problem) =>
      io.error(`temper: spans could not be exported to ${endpoint}: ${messageOf(problem, 300)}\n`),
  });
}

/** `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` unchanged, or `OTEL_EXPORTER_OTLP_ENDPOINT` with `/v1/traces`. */
export function traceEndpoint(environment: EnvironmentVariables): string | undefined {
  if (environment['OTEL_SDK_DISABLED']?.toLowerCase() === 'true') return undefined;
  const [tracesEndpoint, base] = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'].map((name) => {
    const value = environment[name] ?? '';
    if (value === '') return undefined;
    if (!/^https?:/.test(value) || !URL.canParse(value)) {
      throw new TemperError(
        'TEMPER_USAGE',
        `${name} is not an http or https URL; set it to an OTLP/HTTP collector or unset it`,
      );
    }
    return value;
  });
  if (tracesEndpoint !== undefined) return tracesEndpoint;
  return base === undefined ? undefined : `${base.replace(/\/+$/, '')}/v1/traces`;
}
