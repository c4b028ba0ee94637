import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createRegistry, registerMetrics } from '../../telemetry/prometheus.ts';
import { OPERATOR_METRICS } from '../../telemetry/temper-metrics.ts';
import { Store } from '../../kube/informer/store.ts';
import { aPolicy, anAgent, NOW } from '../agent/observed.testing.ts';
import { Cache } from '../kube/cache.ts';
import type { StoredAgent } from '../kube/types.ts';
import type { ToolMarks } from '../ports.ts';
import type { StoredTool } from '../tool/stored-tool.ts';
import { aTool, DIGEST } from '../tool/tool.testing.ts';
import { addToolIndexes } from '../tool/tool-index.ts';
import { countTransitions, evaluateTools, toolEvents } from './agent-tools.ts';
import { observeTools } from './observe-tools.ts';

const log = createLogger({ level: 'silent', destination: { write: () => {} }, secrets: createSecretRedactor() });
const FINDING = { digest: DIGEST, cause: 'Harmful', message: '8 of its 8 tasks ended badly' } as const;

function setup(tools: readonly StoredTool[], agent: StoredAgent = anAgent()) {
  const store = new Store<StoredTool>();
  const cache = new Cache([store]);
  addToolIndexes({ tools: cache, approvals: new Cache([]), requests: new Cache([]) });
  for (const tool of tools) store.set(tool);
  const asked: ToolMarks[] = [];
  const trustEvidence = {
    tools: (_uid: string, marks: ToolMarks) => {
      asked.push(marks);
      return {
        findings: marks.tools.some(({ digest }) => digest === DIGEST) ? [FINDING] : [],
        orders: [],
        usedTogether: [],
      };
    },
  };
  return { asked, observed: observeTools({ tools: cache, trustEvidence }, agent, aPolicy(), NOW) };
}

const shared = aTool({ tier: 'Shared' }, { status: { active: true } });

describe('the tools of one agent in a reconcile', () => {
  it('its records are asked about the tools that it has in service, with the limits of its policy', () => {
    const ofOther = aTool(
      { tier: 'Agent', agent: 'analyst', digest: `sha256:${'b'.repeat(64)}` },
      {
        metadata: {
          name: 'other',
          ownerReferences: [{ apiVersion: 'v1', kind: 'Agent', name: 'analyst', uid: 'u-old' }],
        },
      },
    );
    const { asked } = setup([shared, ofOther]);
    const tools = [{ digest: DIGEST, countFrom: 0 }];
    assert.deepEqual(asked, [{ maxHarmPercent: 20, maxErrorPercent: 15, tools }]);
  });

  it('an agent without promoted tools is asked nothing', () => {
    const { asked, observed } = setup([]);
    assert.deepEqual([asked, observed], [[], undefined]);
  });

  it('a tool that it lost is not assessed, and its tasks before a reactivation do not count', () => {
    const lost = { digest: DIGEST, tool: 'csv_rows', cause: 'Harmful', message: 'x', since: '2031-05-04T00:00:00Z' };
    const withEntry = (entry: object) =>
      setup([shared], { ...anAgent(), status: { deactivatedTools: [entry] } } as StoredAgent).asked[0]?.tools;
    assert.deepEqual(withEntry(lost), []);
    const reactivatedAt = '2031-05-04T01:00:00Z';
    assert.deepEqual(withEntry({ ...lost, reactivatedAt }), [{ digest: DIGEST, countFrom: Date.parse(reactivatedAt) }]);
  });

  it('the record precedes the status, and a change that cannot be recorded does not happen', async () => {
    const { observed } = setup([shared]);
    const records: { namespace: string; action: string; subject: string }[] = [];
    const append = async (namespace: string, { action, subject }: { action: string; subject: string }) => {
      records.push({ namespace, action, subject });
    };
    const evaluated = await evaluateTools({ audit: { append }, operatorMetrics: undefined }, anAgent(), observed, log);
    assert.deepEqual(records, [{ namespace: 'team-a', action: 'tool.deactivated', subject: DIGEST }]);
    assert.deepEqual(
      evaluated?.entries.map(({ tool, cause }) => [tool, cause]),
      [['csv_rows', 'Harmful']],
    );
    const failing = { append: () => Promise.reject(new Error('NATS is away')) };
    assert.equal(
      await evaluateTools({ audit: failing, operatorMetrics: undefined }, anAgent(), observed, log),
      undefined,
    );
  });

  it('one Event per change has the figures and the next step, and a counter has the cause', async () => {
    const { observed } = setup([shared]);
    const evaluated = await evaluateTools({ audit: undefined, operatorMetrics: undefined }, anAgent(), observed, log);
    assert.ok(evaluated !== undefined);
    const [event] = toolEvents(evaluated);
    assert.deepEqual([event?.type, event?.reason], ['Warning', 'ToolDeactivated']);
    assert.match(
      event?.message ?? '',
      /csv_rows is deactivated: 8 of its 8 tasks ended badly; .*kubectl temper reactivate/,
    );
    const page = createRegistry();
    countTransitions({ audit: undefined, operatorMetrics: registerMetrics(page, OPERATOR_METRICS) }, evaluated);
    assert.match(await page.metrics(), /temper_tools_deactivated_total\{cause="Harmful"\} 1/);
  });
});
