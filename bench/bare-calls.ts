import ivm from 'isolated-vm';

/** What a warm call is measured against: a new isolate for each call, the same source and input, and nothing else. */
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
