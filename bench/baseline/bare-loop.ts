import { readFileSync } from 'node:fs';
import ivm from 'isolated-vm';

/**
 * The baseline of `temper tool check`: a new isolate per test of each tool in the file given as argument, and a comparison of the output
 * text. It is a separate process, so that both measurements include the start of a process.
 */
interface Tool {
  code: string;
  testCases: { input: unknown; expectedOutput: unknown }[];
}

let passed = 0;
for (const line of readFileSync(process.argv[2] ?? '', 'utf8')
  .trim()
  .split('\n')) {
  const { code, testCases } = JSON.parse(line) as Tool;
  for (const { input, expectedOutput } of testCases) {
    const isolate = new ivm.Isolate({ memoryLimit: 128 });
    const context = isolate.createContextSync();
    isolate.compileScriptSync(code).runSync(context);
    context.global.setSync('input', JSON.stringify(input));
    const output = context.evalSync('JSON.stringify(execute(JSON.parse(input)))', { timeout: 5_000 }) as string;
    if (output === JSON.stringify(expectedOutput)) passed += 1;
    isolate.dispose();
  }
}
process.stdout.write(`${passed}\n`);
