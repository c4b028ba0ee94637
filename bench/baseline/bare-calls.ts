import ivm from 'isolated-vm';

/** The baseline of a warm tool call: a new isolate per call with the same source and input, and no checks. */
process.on('message', ({ source, input, calls }: { source: string; input: string; calls: number }) => {
  const times: number[] = [];
  for (let call = 0; call < calls; call += 1) {
    const begin = performance.now();
    const isolate = new ivm.Isolate({ memoryLimit: 128 });
    const context = isolate.createContextSync();
    isolate.compileScriptSync(source).runSync(context);
    context.global.setSync('input', input);
    JSON.parse(context.evalSync('JSON.stringify(execute(JSON.parse(input)))', { timeout: 5_000 }) as string);
    isolate.dispose();
    times.push(performance.now() - begin);
  }
  process.send?.(times);
});
