import { answersOk, waitUntilReady } from '#platform/wait-until.ts';
import type { SupervisedProcess, Supervisor } from '#platform/supervisor.ts';
import type { ReplicaName } from '../plan.ts';
import type { Endpoint } from '#platform/balancer.ts';

const SERVICE_STAGE = 3;
const READY_TIMEOUT_MS = 90_000;

/** What a process of the platform runs. */
export interface Program {
  readonly bundle: string;
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

/** One of the two places of a service: a port, and the process that answers there, replaced whenever it ended. */
export class Replica implements Endpoint {
  readonly name: ReplicaName;
  readonly port: number;
  readonly #supervisor: Supervisor;
  readonly #program: Program;
  #generation = 0;
  #process: SupervisedProcess | null = null;
  readonly logFiles: string[] = [];

  constructor(supervisor: Supervisor, name: ReplicaName, port: number, program: Program) {
    this.#supervisor = supervisor;
    this.name = name;
    this.port = port;
    this.#program = program;
  }

  get label(): string {
    return `${this.name.service}-${this.name.letter}`;
  }

  get process(): SupervisedProcess {
    if (this.#process === null) throw new Error(`${this.label} was never started`);
    return this.#process;
  }

  async spawn(): Promise<void> {
    this.#generation += 1;
    this.#process = await this.#supervisor.spawn({
      // A log file for each process: the audit reads all of them.
      name: `${this.label}-${this.#generation}`,
      stage: SERVICE_STAGE,
      command: process.execPath,
      args: [this.#program.bundle],
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...this.#program.env },
      cwd: this.#program.cwd,
      graceMs: 30_000,
    });
    this.logFiles.push(this.#process.logFile);
  }

  async waitUntilReady(): Promise<void> {
    await waitUntilReady(this.process, () => this.isReady(), READY_TIMEOUT_MS);
  }

  isReady(): Promise<boolean> {
    return answersOk(`http://127.0.0.1:${this.port}/health/ready`)();
  }

  signal(signal: NodeJS.Signals): void {
    process.kill(this.process.pid, signal);
  }
}
