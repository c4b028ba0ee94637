import { askTester, type TesterDeps } from './ask-tester.ts';
import type { Testers } from '../types.ts';

/** Asks the models, both at once. */
export function createModelTesters(deps: TesterDeps, names: readonly string[]): Testers {
  return {
    names,
    ask: (open, op) => Promise.all(names.map((name) => askTester(deps, name, open, op))),
  };
}
