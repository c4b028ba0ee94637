import assert from 'node:assert/strict';
import { it } from 'node:test';
import { pollValue } from '../../../support/poll.ts';
import { NAMESPACE, type SampleSetup } from './sample-setup.ts';

/** Samples that answer a question of a user: with a program, with nested agents, and with child agents. */
export function questions(setup: () => SampleSetup): void {
  it('an agent in code mode answers with one program', async () => {
    await using _sample = await setup().start('code', 'programmer');
    const printed = await setup().run(
      'kubectl temper send programmer "How many orders were paid in April, and what were they worth?" --follow -n quickstart',
    );
    assert.match(printed, /◂ programmer: 361 orders were paid in April, together \$67091\.82\.\n$/);
    assert.match(printed, /file_read/);
  });

  it('nested agents count one month each', async () => {
    await using _sample = await setup().start('nested', 'planner');
    const printed = await setup().run(
      'kubectl temper send planner "How many orders were paid in April, May and June?" --follow -n quickstart',
    );
    const answer = '2026-04: 361 paid orders, 2026-05: 384 paid orders, 2026-06: 381 paid orders';
    assert.ok(printed.endsWith(`◂ planner: ${answer}\n`), printed);
  });

  it('a team starts two children, asks them and ends them, and a judged specialist answers', async () => {
    await using _sample = await setup().start('orchestrator', 'lead');
    const { cluster } = setup();
    const answered = await setup().run('kubectl temper send lead "Which orders are there?" --follow -n quickstart');
    assert.match(answered, /◂ lead: In short: 6 files of orders\.\n$/);
    const started = ['--field-selector', 'reason=ChildStarted,involvedObject.name=lead', '-o', 'name'];
    assert.notEqual(await cluster.kubectl('get', 'events', '-n', NAMESPACE, ...started), '');
    const question = 'kubectl temper send lead "What is an anvil worth in hammers?" --follow -n quickstart';
    assert.match(await setup().run(question), /◂ lead: An anvil costs about as much as five hammers\.\n$/);
    await pollValue(
      'the end of all children',
      () => cluster.kubectl('get', 'agents', '-n', NAMESPACE, '-l', 'temper.dev/parent-agent-uid', '-o', 'name'),
      (left) => left === '',
    );
  });
}
