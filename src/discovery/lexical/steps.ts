/** Work in steps of a bounded size. Its caller may do other work after each of them. */
export type SearchSteps<Result> = Generator<undefined, Result, undefined>;

/** The result of all steps, without other work in between. */
export function complete<Result>(steps: SearchSteps<Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
