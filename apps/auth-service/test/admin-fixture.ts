import { recordSecret, runProcess } from '@platform/testing';
import { administer } from '../src/admin/administration';
import { SECRET_KEY } from './auth-fixture';
import { ADMINISTRATION, ensureBuilt } from './replica-processes';

/** Any JSON value, because each test asserts its own shape. */
type JsonResult = ReturnType<typeof JSON.parse>;

interface CommandOutput {
  exitCode: number;
  out: string;
  err: string;
}

type RunCommand = (args: string[], env: Record<string, string>) => Promise<CommandOutput>;

async function runHere(args: string[], env: Record<string, string>): Promise<CommandOutput> {
  const written = { out: '', err: '' };
  const output = {
    out: (text: string) => void (written.out += text),
    err: (text: string) => void (written.err += text),
  };
  const exitCode = await administer(args, output, env);
  return { exitCode, ...written };
}

async function runAsProcess(args: string[], env: Record<string, string>): Promise<CommandOutput> {
  await ensureBuilt();
  const command = await runProcess({ entry: ADMINISTRATION, args, env, answers: true });
  const exitCode = await command.exited;
  return exitCode === 0
    ? { exitCode, out: command.output(), err: '' }
    : { exitCode: exitCode ?? -1, out: '', err: command.output() };
}

/** Runs administration commands in this process, on one database, as the role in `url`. */
export function administrator(url: string) {
  return administratorBy(runHere, url);
}

/** Like `administrator`, but runs each command as a process of the built program. */
export function administratorProcess(url: string) {
  return administratorBy(runAsProcess, url);
}

function administratorBy(runCommand: RunCommand, url: string) {
  const env = { MIGRATION_DATABASE_URL: url, SECRET_ENCRYPTION_KEY: SECRET_KEY.toString('base64url') };

  const run = (line: string, change: Record<string, string> = {}): Promise<CommandOutput> =>
    runCommand(line.split(' '), { ...env, ...change });

  /** Returns the `--json` output of a command that must succeed. */
  const json = async (line: string): Promise<JsonResult> => {
    const { exitCode, out, err } = await run(`${line} --json`);
    if (exitCode !== 0) throw new Error(`${line}: ${err}`);
    const result: JsonResult = JSON.parse(out);
    // Remembered for the log scan, because a secret that is only used for signing is never sent.
    if (typeof result.sharedSecret === 'string') recordSecret('shared secret', result.sharedSecret);
    return result;
  };

  /** Returns the error message of a command that must be refused. */
  const refusal = async (line: string): Promise<string> => {
    const { exitCode, out, err } = await run(line);
    expect({ exitCode, out }).toEqual({ exitCode: 1, out: '' });
    return err.trimEnd();
  };

  return { run, json, refusal };
}
