import { administer } from '../src/admin/administration';
import { SECRET_KEY } from './auth-fixture';

/** Untyped on purpose: the assertion is the type. */
type JsonAnswer = ReturnType<typeof JSON.parse>;

export interface AdminAnswer {
  exitCode: number;
  out: string;
  err: string;
}

/** Runs administration commands on one database, as the role of `url`. */
export function administrator(url: string) {
  const env = { MIGRATION_DATABASE_URL: url, SECRET_ENCRYPTION_KEY: SECRET_KEY.toString('base64url') };

  const run = async (line: string, change: NodeJS.ProcessEnv = {}): Promise<AdminAnswer> => {
    const said = { out: '', err: '' };
    const output = {
      out: (text: string) => void (said.out += text),
      err: (text: string) => void (said.err += text),
    };
    const exitCode = await administer(line.split(' '), output, { ...env, ...change });
    return { exitCode, ...said };
  };

  /** What a command that succeeds says with `--json`. */
  const json = async (line: string): Promise<JsonAnswer> => {
    const { exitCode, out, err } = await run(`${line} --json`);
    if (exitCode !== 0) throw new Error(`${line}: ${err}`);
    return JSON.parse(out);
  };

  /** Why a command is refused. */
  const refusal = async (line: string): Promise<string> => {
    const { exitCode, out, err } = await run(line);
    expect({ exitCode, out }).toEqual({ exitCode: 1, out: '' });
    return err;
  };

  return { run, json, refusal };
}
