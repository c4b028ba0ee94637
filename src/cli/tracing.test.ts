import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../lib/errors.ts';
import { traceEndpoint } from './tracing.ts';

describe('the trace endpoint of a command', () => {
  it('the trace endpoint comes from the standard OpenTelemetry variables', () => {
    const base = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318/' };
    const own = { ...base, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://collector/traces' };
    assert.equal(traceEndpoint({}), undefined);
    assert.equal(traceEndpoint({ OTEL_EXPORTER_OTLP_ENDPOINT: '' }), undefined);
    assert.equal(traceEndpoint(base), 'http://127.0.0.1:4318/v1/traces');
    assert.equal(traceEndpoint(own), 'https://collector/traces');
    assert.equal(traceEndpoint({ ...own, OTEL_SDK_DISABLED: 'TRUE' }), undefined);
  });

  it('an invalid URL is refused', () => {
    for (const value of ['collector:4318', 'grpc://collector', 'http://']) {
      assert.throws(
        () => traceEndpoint({ OTEL_EXPORTER_OTLP_ENDPOINT: value }),
        (error) => isTemperError(error, 'TEMPER_USAGE'),
        value,
      );
    }
  });
});
