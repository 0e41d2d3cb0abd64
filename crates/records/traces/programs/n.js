const { Worker, isMainThread } = require('worker_threads');
if (isMainThread) {
    for (let i = 0; i < 3; i++) new Worker(__filename);
} else {
    const rows = [];
    for (let i = 0; i < 60000; i++) rows.push({ i, text: 'x' + i });
    rows.sort((a, b) => (a.text < b.text ? -1 : 1));
}
