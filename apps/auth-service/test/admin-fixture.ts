import { rememberSecret, runProcess } from '@platform/testing';
import { administer } from '../src/admin/administration';
import { SECRET_KEY } from './auth-fixture';
import { ADMINISTRATION, ensureBuilt } from './replica-processes';

/** Untyped on purpose: the assertion is the type. */
type JsonAnswer = ReturnType<typeof JSON.parse>;

interface AdminAnswer {
  exitCode: number;
  out: string;
  err: string;
}

type RunCommand = (args: string[], env: Record<string, string>) => Promise<AdminAnswer>;

async function runHere(args: string[], env: Record<string, string>): Promise<AdminAnswer> {
  const said = { out: '', err: '' };
  const output = {
    out: (text: string) => void (said.out += text),
    err: (text: string) => void (said.err += text),
  };
  const exitCode = await administer(args, output, env);
  return { exitCode, ...said };
}

async function runAsProcess(args: string[], env: Record<string, string>): Promise<AdminAnswer> {
  await ensureBuilt();
  const command = await runProcess({ entry: ADMINISTRATION, args, env, answers: true });
  const exitCode = await command.exited;
  return exitCode === 0
    ? { exitCode, out: command.output(), err: '' }
    : { exitCode: exitCode ?? -1, out: '', err: command.output() };
}

/** Runs administration commands on one database, as the role of `url`, within this process. */
export function administrator(url: string) {
  return administratorBy(runHere, url);
}

/** The same by the built command line, as a process of its own each time. */
export function administratorProcess(url: string) {
  return administratorBy(runAsProcess, url);
}

function administratorBy(runCommand: RunCommand, url: string) {
  const env = { MIGRATION_DATABASE_URL: url, SECRET_ENCRYPTION_KEY: SECRET_KEY.toString('base64url') };

  const run = (line: string, change: Record<string, string> = {}): Promise<AdminAnswer> =>
    runCommand(line.split(' '), { ...env, ...change });

  /** What a command that succeeds says with `--json`. */
  const json = async (line: string): Promise<JsonAnswer> => {
    const { exitCode, out, err } = await run(`${line} --json`);
    if (exitCode !== 0) throw new Error(`${line}: ${err}`);
    const answer: JsonAnswer = JSON.parse(out);
    // An application that only ever signs with it never sends it.
    if (typeof answer.sharedSecret === 'string') rememberSecret('shared secret', answer.sharedSecret);
    return answer;
  };

  /** Why a command is refused. */
  const refusal = async (line: string): Promise<string> => {
    const { exitCode, out, err } = await run(line);
    expect({ exitCode, out }).toEqual({ exitCode: 1, out: '' });
    return err.trimEnd();
  };

  return { run, json, refusal };
}
