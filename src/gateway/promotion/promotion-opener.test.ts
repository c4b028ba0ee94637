import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import { artifactDigest } from '../../tempering/registry/serialization.ts';
import { anArtifact, aVerdict } from '../../tempering/tempering.testing.ts';
import type { ToolStatistics } from '../../tempering/types.ts';
import { createPromotionOpener, type PromotionOpenerDeps } from './promotion-opener.ts';

const ARTIFACT = anArtifact();
const DIGEST = artifactDigest(ARTIFACT);
const USED = {
  totalUses: 20,
  successes: 20,
  failures: 0,
  distinctInputs: 20,
  rootMessages: 20,
  recordedInputs: { none: 20, observed: 0, reported: 0 },
  unrecorded: {},
} as unknown as ToolStatistics;

/** The opener of a gateway whose storage refuses with `refusal`. */
function opener(refusal?: TemperError) {
  const requested: unknown[] = [];
  const lines: string[] = [];
  let counted = 0;
  const deps = {
    directory: {
      byUid: () => ({ policy: { spec: {} }, suspended: false, agent: { metadata: { name: 'analyst' } } }),
      decider: () => ({ decide: () => ({ effect: 'Allow' }) }),
    },
    registry: { tools: async () => [{ artifact: ARTIFACT, digest: DIGEST, verdicts: [aVerdict()] }] },
    states: { get: async () => ({ record: undefined, revision: 0 }) },
    requests: { publish: async (request: unknown) => void requested.push(request) },
    quotaOf: () => ({
      reserve: async (_store: string, bytes: number) => {
        if (refusal !== undefined) throw refusal;
        counted += bytes;
      },
      release: (_store: string, bytes: number) => void (counted -= bytes),
    }),
    isTainted: async () => false,
    clock: new FakeClock(),
    log: createLogger({
      level: 'warn',
      destination: { write: (line: string) => lines.push(line) },
      secrets: createSecretRedactor(),
    }),
  } as unknown as PromotionOpenerDeps;
  const open = createPromotionOpener(deps);
  const use = () => open({ agentUid: 'u-1', session: 's', digest: DIGEST, statistics: USED });
  return { use, requested, lines, counted: () => counted };
}

describe('the request of a promotion', () => {
  it('uses of a tool whose promotion waits count nothing, because the operator stores it once', async () => {
    const { use, requested, counted } = opener();
    for (let uses = 0; uses < 3; uses += 1) await use();
    assert.deepEqual([requested.length, counted()], [3, 0]);
  });

  it('a promotion that may not be stored is not requested, and the use of the tool succeeds', async () => {
    const { use, requested, lines } = opener(new TemperError('TEMPER_STORAGE_LIMIT_EXCEEDED', 'full'));
    await use();
    assert.deepEqual([requested, lines.length], [[], 1]);
    assert.match(lines[0] ?? '', /a promotion request was not stored/);
  });

  it('another error of the storage is not hidden', async () => {
    const { use } = opener(new TemperError('TEMPER_BUS_UNAVAILABLE', 'no answer'));
    await assert.rejects(use(), (error) => isTemperError(error, 'TEMPER_BUS_UNAVAILABLE'));
  });
});
