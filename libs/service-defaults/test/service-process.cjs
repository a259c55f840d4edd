/** Runs the small application of these tests as a process of its own. */
require('./run-typescript.cjs');
const { runService } = require('../src/index.ts');
const { Story, stoppingConfig, stoppingDefinition } = require('./stopping-app.ts');

// The lines that only this program writes; a service writes its own through its logger.
process.stdout.on('error', () => undefined);

void runService('stopping', () => ({
  ...stoppingDefinition,
  config: stoppingConfig(process.env),
  configure(app) {
    const story = app.get(Story);
    const { push } = story.events;
    story.events.push = (event) => {
      process.stdout.write(`${JSON.stringify({ msg: event })}\n`);
      // Held until the process has been told to stop.
      if (event === 'begun') process.once('SIGTERM', story.release).once('SIGINT', story.release);
      return push.call(story.events, event);
    };
  },
}));
