import assert from 'node:assert/strict';
import { it } from 'node:test';
import { pollValue } from '../support/poll.ts';

/** Two agents that have one Shared tool, which both find by the query. */
export interface SharedToolSetup {
  readonly query: string;
  readonly tool: string;
  /** Names of what the agent finds. */
  found(agent: 'loser' | 'neighbour'): Promise<string[]>;
  /** The tool is deactivated for `loser`. */
  lose(): Promise<void>;
  /** It is reactivated. */
  regain(): Promise<void>;
}

/** The contract of every discovery about a Shared tool that one agent lost. */
export function lostToolContract(adapter: string, open: () => Promise<SharedToolSetup>): void {
  it(`${adapter}: an agent that lost a Shared tool does not find it, its neighbour does, and it returns`, async () => {
    const setup = await open();
    const finds = async (agent: 'loser' | 'neighbour') => (await setup.found(agent)).includes(setup.tool);
    const becomes = (what: string, expected: boolean) =>
      pollValue(
        what,
        () => finds('loser'),
        (value) => value === expected,
      );
    await becomes('the tool', true);
    await setup.lose();
    await becomes('the loss of the tool', false);
    assert.equal(await finds('neighbour'), true);
    await setup.regain();
    await becomes('the tool again', true);
  });
}
