import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SessionToolSummary } from '../../../../src/gateway-api/user-api.ts';
import { jsonLines } from '../../../support/json-lines.ts';
import { pollValue } from '../../../support/poll.ts';
import { LIES, LIES_OF_A_POD } from '../../../support/promotion/lies.ts';
import { INVENTED } from '../../lying-agent/liar.ts';
import { TOOL_OF_ORIGINS, toolOfLie, VERIFIED_LIES } from '../../lying-agent/lying-tools.ts';
import { readSessionLines } from '../../support/session-lines.ts';
import { endsOf, sendAll } from '../../support/user-session.ts';
import type { ForgedTools } from '../../support/forged-tools-setup.ts';
import { NESTED } from '../../support/forging-script.ts';

interface AgentStatus {
  readonly status?: { readonly level?: string; readonly deactivatedTools?: readonly unknown[] };
}

/** Two forges and five uses. */
const MESSAGES_OF_SMITH = 7;
const USES = [1, 2, 3, 4, 5];
const MESSAGES = ['prepare', ...USES.map((number) => `lie ${number}`), 'invent'];
const SESSION = 'lies';
const VERIFICATION_TIMEOUT_MS = 180_000;
const CONTRADICTED = { false_tests: [1, 5], false_outputs: [0, 5], false_inputs: [0, 5] } as const;

export async function tellLies({ sessionOf }: ForgedTools): Promise<void> {
  await sendAll(sessionOf('liar', SESSION), MESSAGES);
}

/** An agent image that reports what did not happen, with the token of its pod. */
export function lyingAgent(current: () => ForgedTools): void {
  const toolsOf = async (agent: string): Promise<SessionToolSummary[]> => {
    const { stdout } = await current().agents.temper('top', 'tools', agent, '--output', 'json');
    return jsonLines(stdout);
  };
  const toolsOfLiar = () => toolsOf('liar');

  describe('an agent image that lies', () => {
    it('a pod of another image than its neighbours gets its lies answered as the gateway answers them', async () => {
      const { agents, sessionOf } = current();
      const imageOf = async (name: string) =>
        (await agents.boundPod(name)).status.containerStatuses?.find((one) => one.name === 'agent')?.imageID;
      assert.notEqual(await imageOf('liar'), await imageOf('smith'));
      const ends = await endsOf(sessionOf('liar', SESSION), MESSAGES.length);
      const answers = ends.map((end) => JSON.parse(end) as Record<string, string>);
      const [prepared = {}, ...answered] = answers;
      const invented = answered.pop();
      assert.deepEqual([...new Set(Object.values(prepared))], ['ok'], JSON.stringify(prepared));
      const expected = LIES.flatMap(([lie, , effect]) =>
        LIES_OF_A_POD.includes(lie) ? [[lie, effect?.status === undefined ? 'ok' : String(effect.status)]] : [],
      );
      const verified = Object.keys(VERIFIED_LIES).map((tool) => [tool, 'ok']);
      for (const answer of answered) assert.deepEqual(answer, Object.fromEntries([...expected, ...verified]));
      assert.deepEqual(invented, { origins: 'ok', events: 'ok', audit: 'ok' });
    });

    it('lies about deliveries, sessions, origins, answers and evidence open no promotion', async () => {
      const tools = new Map((await toolsOfLiar()).map((tool) => [tool.name, tool]));
      for (const [lie, , { counts = true } = {}] of LIES) {
        if (!LIES_OF_A_POD.includes(lie)) continue;
        const tool = tools.get(toolOfLie(lie));
        assert.deepEqual([tool?.promotion.state, tool?.uses], ['Candidate', counts ? USES.length : 0], lie);
        const reason = counts ? /5 have answers that only the pod reported/ : /0 of 5 successful uses/;
        assert.match(tool?.promotion.reason ?? '', reason, lie);
      }
      const origins = tools.get(TOOL_OF_ORIGINS)?.promotion;
      assert.match(origins?.reason ?? '', /1 of 3 root messages/);
      const lines = await readSessionLines(current().cluster.node.kubeconfig, current().sessionOf('liar', SESSION));
      const types = lines.flatMap((line) => (line.kind === 'event' ? [line.event.type] : []));
      assert.ok(!types.includes('promotion'), types.join());
    });

    it('false tests, outputs and inputs are contradicted by re-runs: in describe, Event and audit', async () => {
      const { agents, cluster } = current();
      const rejected = await pollValue(
        'three refused promotions',
        async () => (await toolsOfLiar()).filter(({ promotion }) => promotion.state === 'Rejected'),
        ({ length }) => length === Object.keys(CONTRADICTED).length,
        { timeoutMs: VERIFICATION_TIMEOUT_MS },
      );
      const described = await cluster.kubectl('describe', 'agent', 'liar', '-n', agents.namespace);
      for (const [name, [tests, uses]] of Object.entries(CONTRADICTED)) {
        const reason = rejected.find((tool) => tool.name === name)?.promotion.reason ?? '';
        const lies = tests === 0 ? `${uses} outputs` : `${tests} tests .*, ${uses} outputs`;
        assert.match(reason, new RegExp(`re-runs contradict the pod of the agent: ${lies}`), name);
        assert.match(described, new RegExp(`ToolPromotionRefused .*${name} stays at tier Session`), name);
      }
      const { stdout } = await agents.temper('audit', 'show', 'false_tests', '--output', 'json');
      const actions = jsonLines<{ action: string }>(stdout).map(({ action }) => action);
      assert.ok(actions.includes('tool.reports-contradicted'), stdout);
      const { items } = JSON.parse(
        await cluster.kubectl(
          'get',
          'emergenttools',
          '-n',
          agents.namespace,
          '-l',
          'temper.dev/agent=liar',
          '-o',
          'json',
        ),
      ) as { items: unknown[] };
      assert.deepEqual(items, [], 'no tool of the lying agent became an object');
    });

    it('claims about the session, the uses and the tools of a neighbour change nothing of the neighbour', async () => {
      const { agents, cluster, sessionOf } = current();
      const smith = sessionOf('smith', 'forges');
      const stateOfSmith = async () => {
        const { items, tainted } = (await agents.sessions('smith')).find(({ session }) => session === 'forges') ?? {};
        const { level, deactivatedTools } = ((await agents.get('smith')) as AgentStatus).status ?? {};
        const tool = (await toolsOf('smith')).find(({ name }) => name === NESTED);
        const lines = await readSessionLines(cluster.node.kubeconfig, smith);
        return { tool, items, tainted, deactivatedTools, level, lines: JSON.stringify(lines) };
      };
      await endsOf(smith, MESSAGES_OF_SMITH);
      const before = await stateOfSmith();
      const liar = sessionOf('liar', 'accusations');
      await sendAll(liar, [`accuse smith forges ${before.tool?.digest}`]);
      const [end = ''] = await endsOf(liar, 1);
      assert.deepEqual(JSON.parse(end), {
        history: 'true',
        tools: 'true',
        items: '403',
        uses: 'ok',
        calls: 'ok',
        events: 'ok',
        audit: 'ok',
        drop: 'ok',
        close: 'ok',
      });
      const { stdout } = await agents.temper('audit', 'show', before.tool?.digest ?? '', '--output', 'json');
      const demoted = jsonLines<{ action: string }>(stdout).filter(({ action }) => action === 'tool.demoted');
      assert.deepEqual(demoted, [], 'what a pod reports is no observed record');
      const after = await stateOfSmith();
      assert.ok(!after.lines.includes(INVENTED), 'no event of the liar is in the session of its neighbour');
      assert.deepEqual(after, before);
    });

    it('the trust in the agent falls, and its neighbours keep theirs', async () => {
      const { agents, sessionOf } = current();
      const trustOf = async (name: string) =>
        ((await agents.get(name)) as { status?: { level?: string; trust?: { reason?: string } } }).status;
      const fallen = await pollValue(
        'the level of the lying agent',
        () => trustOf('liar'),
        (status) => status?.level === 'restricted' || status?.level === 'sandboxed',
      );
      assert.match(fallen?.trust?.reason ?? '', /\d+ of the last \d+ tasks failed/);
      assert.equal((await trustOf('smith'))?.level, 'standard');
      const session = sessionOf('smith', 'neighbour');
      await sendAll(session, ['hello']);
      await endsOf(session, 1);
    });
  });
}
