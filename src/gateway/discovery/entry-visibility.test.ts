import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { toolEntry } from '../../discovery/entry.ts';
import type { Decider, PolicyRequest } from '../../policy/types.ts';
import { DISCOVER_TOOL } from '../../discovery/discover-tool.ts';
import { EntryVisibility } from './entry-visibility.ts';

function aDecider(denied: string) {
  const asked: string[] = [];
  const decide = (request: PolicyRequest) => {
    if (request.kind !== 'Tool') throw new Error(`unexpected request ${request.kind}`);
    asked.push(request.name);
    return { effect: request.name === denied ? 'Deny' : 'Allow', rule: 'x', reason: '', risk: 'low' };
  };
  return { asked, decider: { decide } as unknown as Decider };
}

describe('the visibility of entries', () => {
  it('a decider decides once about an entry, and another decider decides again', () => {
    const visibility = new EntryVisibility();
    const entry = toolEntry({ ...DISCOVER_TOOL, name: 'csv_rows' });
    const [allows, denies] = [aDecider('other'), aDecider('csv_rows')];
    for (let time = 0; time < 3; time += 1) {
      assert.equal(visibility.of('analyst', allows.decider)(entry), true);
      assert.equal(visibility.of('analyst', denies.decider)(entry), false);
    }
    assert.deepEqual([allows.asked, denies.asked], [['csv_rows'], ['csv_rows']]);
  });

  it('the first decisions about a namespace let other work run in between, and a search asks for none again', async () => {
    const visibility = new EntryVisibility();
    const entries = Array.from({ length: 1_000 }, (_, index) => toolEntry({ ...DISCOVER_TOOL, name: `tool_${index}` }));
    const { asked, decider } = aDecider('tool_7');
    const askedInBetween: number[] = [];
    let isDone = false;
    const other = (): void => {
      askedInBetween.push(asked.length);
      if (!isDone) setImmediate(other);
    };
    setImmediate(other);
    await visibility.decide('analyst', decider, entries);
    isDone = true;
    assert.ok(
      askedInBetween.some((count) => count > 0 && count < entries.length),
      `other work ran after ${askedInBetween.join(', ')} of ${entries.length} decisions`,
    );
    const permits = visibility.of('analyst', decider);
    assert.equal(entries.filter(permits).length, entries.length - 1);
    assert.equal(asked.length, entries.length);
  });

  it("an entry of tier Agent is visible to its agent only, also with the neighbour's decider", () => {
    const visibility = new EntryVisibility();
    const entry = { ...toolEntry({ ...DISCOVER_TOOL, name: 'csv_rows' }), agent: 'analyst' };
    const { decider } = aDecider('other');
    assert.equal(visibility.of('analyst', decider)(entry), true);
    assert.equal(visibility.of('clerk', decider)(entry), false);
  });
});
