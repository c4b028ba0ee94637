import { type Command, Option } from 'commander';
import { isPlugin, refusePlugin } from '../cluster/options.ts';
import type { CliIo } from '../io.ts';

const output = (): Option =>
  new Option('-o, --output <form>', 'output format').choices(['text', 'json']).default('text');
const plainHttp = (): Option => new Option('--plain-http', 'use http; localhost needs no option');

/** Adds the verbs for folders of skills. */
export function addSkillVerbs(skill: Command, io: CliIo, finish: (exitCode: number) => void): void {
  skill
    .command('check <folder...>', { hidden: isPlugin(io) })
    .description('check folders of skills: what is wrong, and which keys have no effect')
    .addOption(output())
    .action(async (folders: string[], options) => {
      refusePlugin('skill check', io);
      const { checkSkills } = await import('./skill-check.ts');
      finish(await checkSkills({ ...options, folders }, io));
    });
  skill
    .command('export <folder...>', { hidden: isPlugin(io) })
    .description('print folders of skills as Capabilities for a cluster')
    .option('-n, --namespace <name>', 'namespace of the objects')
    .addOption(new Option('-o, --output <form>', 'output format').choices(['yaml', 'json']).default('yaml'))
    .action(async (folders: string[], options) => {
      refusePlugin('skill export', io);
      const { exportSkills } = await import('./skill-export.ts');
      finish(await exportSkills({ ...options, folders }, io));
    });
  skill
    .command('push <folder> <reference>', { hidden: isPlugin(io) })
    .description('push the folder of a skill to an OCI registry')
    .addOption(plainHttp())
    .addOption(output())
    .action(async (folder: string, reference: string, options) => {
      refusePlugin('skill push', io);
      const { pushSkill } = await import('./skill-push.ts');
      finish(await pushSkill({ ...options, folder, reference }, io));
    });
  skill
    .command('pull <reference>', { hidden: isPlugin(io) })
    .description('pull a skill from an OCI registry or a Git repository into a folder')
    .requiredOption('--folder <folder>', 'the folder of the skill, which does not exist yet')
    .option('--replace', 'replace a folder that an earlier pull made')
    .addOption(plainHttp())
    .addOption(output())
    .action(async (reference: string, options) => {
      refusePlugin('skill pull', io);
      const { pullSkill } = await import('./skill-pull.ts');
      finish(await pullSkill({ ...options, reference }, io));
    });
}
