/** Runs the suites' small application as a separate process. */
require('./run-typescript.cjs');
const { runService } = require('../src/index.ts');
const { Story, stoppingConfig, stoppingDefinition } = require('./stopping-app.ts');

// Lines that this program writes directly; the service writes its own through its logger.
process.stdout.on('error', () => undefined);

void runService('stopping', () => ({
  ...stoppingDefinition,
  config: stoppingConfig(process.env),
  configure(app) {
    const story = app.get(Story);
    const { push } = story.events;
    story.events.push = (event) => {
      process.stdout.write(`${JSON.stringify({ msg: event })}\n`);
      // The response is held until the process receives a signal.
      if (event === 'begun') process.once('SIGTERM', story.release).once('SIGINT', story.release);
      return push.call(story.events, event);
    };
  },
}));
