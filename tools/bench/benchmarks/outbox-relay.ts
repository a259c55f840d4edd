import type { Benchmark } from '../benchmark.ts';
import { startTaskParts } from '../task-laboratory.ts';

/** Stored events on their way out. */
export const outboxRelay: Benchmark = {
  id: 'outbox-relay',
  title: 'Committed events to confirmed publishes',
  async prepare(laboratory) {
    const services = await laboratory.startServices(['auth']);
    await laboratory.migrate('task', services.settings);
    const program = await startTaskParts(laboratory, services.settings, { RELAYS: 'true' });
    const ours = program.contestant(
      'relay',
      'the relay of task-service: locks a partition, selects up to 200 events in order, builds and publishes the envelope of each with a confirm and a log line, deletes what is confirmed, commits; four passes at once',
    );
    const bare = program.contestant(
      'bare publish',
      'confirm channel of `amqplib`, nothing else: no database, no order, no log',
    );
    return {
      unit: 'events/s',
      contestants: [ours, bare],
      comparisons: [{ title: 'bare publish', of: ours.name, against: bare.name, goal: { atLeast: 0.4 } }],
      conditions: [
        '5,000 events of as many facilities, stored in one commit; the same envelope, persistent and mandatory, to the same quorum queue; up to 800 unconfirmed at a time on both sides',
      ],
      close: async () => {
        await program.stop();
        await services.stop();
      },
    };
  },
};
