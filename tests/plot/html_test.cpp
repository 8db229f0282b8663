// SPDX-License-Identifier: MIT
#include <heed/plot/html.hpp>

#include <unistd.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace heed {
namespace {

AttentionPage page() {
  AttentionPage page;
  page.weights = Tensor<float, 4>({2, 3, 2, 4});
  float value = 0;
  for (float& weight : page.weights) weight = (value += 1) / 48;
  page.query_labels = {"</script>", "b"};
  page.key_labels = {"w", "\"x\"\\", "y\n", "<z>"};
  page.title = "Two & three";
  return page;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// What the page's document is after its scripts and `probe` have run; empty without a browser.
std::string shown_by_chromium(std::string html, const std::string& probe) {
  if (std::system("command -v chromium > /dev/null") != 0) return {};
  const auto folder =
      std::filesystem::temp_directory_path() / ("heed_html_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  html.insert(html.rfind("</script>"), probe);
  std::ofstream(folder / "page.html") << html;
  const std::string command =
      "HOME=" + folder.string() +
      " timeout 100 chromium --headless --no-sandbox --disable-gpu --user-data-dir=" +
      (folder / "profile").string() + " --dump-dom file://" + (folder / "page.html").string() +
      " 2> /dev/null";
  std::string shown;
  FILE* output = ::popen(command.c_str(), "r");
  char buffer[4096];
  while (const std::size_t got = std::fread(buffer, 1, sizeof(buffer), output)) {
    shown.append(buffer, got);
  }
  ::pclose(output);
  std::filesystem::remove_all(folder);
  return shown;
}

/// What `probe` has put into document.body.dataset.told; empty without a browser.
std::string told_by_chromium(const std::string& html, const std::string& probe) {
  const std::string shown = shown_by_chromium(html, probe), mark = "data-told=\"";
  if (shown.empty()) return {};
  const auto at = shown.find(mark);
  if (at == std::string::npos) return "nothing told: " + shown;
  return shown.substr(at + mark.size(), shown.find('"', at + mark.size()) - at - mark.size());
}

TEST(Html, HoldsEverythingItself) {
  const std::string html = to_html(page());
  EXPECT_EQ(count(html, "<td><canvas"), 6u);
  EXPECT_EQ(count(html, "</script>"), 1u) << "labels cannot end the script";
  EXPECT_EQ(count(html, "://"), 0u) << "no address of anything";
  EXPECT_EQ(count(html, " src="), 0u);
  EXPECT_EQ(count(html, " href="), 0u);
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
  EXPECT_NE(html.find("<title>Two &amp; three</title>"), std::string::npos);
  EXPECT_NE(html.find(R"(queryLabels=["\u003c/script>","b"])"), std::string::npos);
  EXPECT_NE(html.find(R"(keyLabels=["w","\"x\"\\","y␊","\u003cz>"])"), std::string::npos);
}

TEST(Html, WeightsAsBase64) {
  AttentionPage one;
  one.weights = Tensor<float, 4>({1, 1, 1, 3}, {1, -2, 0.5f});  // 00 00 80 3f, …
  EXPECT_NE(to_html(one).find("data=['AACAPwAAAMAAAAA/',"), std::string::npos);
}

TEST(Html, LongTextsTakeAByteForAWeight) {
  AttentionPage page;
  page.weights = Tensor<float, 4>({2, 3, 512, 512});
  page.weights.fill(0.25f);
  page.weights(0, 0, 0, 0) = 1;
  page.weights(0, 0, 0, 1) = 0;
  page.weights(0, 0, 0, 2) = 1e-9f;  // seen: not the byte of 0
  page.weights(0, 0, 0, 3) = std::nanf("");
  const std::string html = to_html(page);
  EXPECT_LT(html.size(), 30'000'000u * 6 / 72) << "12 layers of 6 heads fit into 30 MB";
  EXPECT_NE(html.find("exact=false"), std::string::npos);
  EXPECT_NE(html.find("data=['/gAB/39/"), std::string::npos) << "254 0 1 255 127 127";
}

TEST(Html, ABrowserDrawsLinesAndLeavesKeysOut) {
  // Of query 1 of head 0: weights 5 to 8 of 48, without key 0 6, 7 and 8 of 21.
  const std::string probe = R"(
    enlarge(0,0);
    const ink=()=>{const d=context.getImageData(0,0,canvas.width,canvas.height).data;let n=0;
      for(let i=0;i<d.length;i+=4)if(d[i+3]>0&&d[i+2]>d[i]+60)++n;return n};
    byId('lines').click();
    const every=ink();
    canvas.onmousemove({clientX:canvas.getBoundingClientRect().left+5,
                        clientY:canvas.getBoundingClientRect().top+12});
    const told=[lines,every>ink(),ink()>0,String(picked)];
    byId('lines').click();
    hidden.add(0);draw();
    told.push([0,1,2,3].map(k=>(21*weights[4+k]).toFixed(4)).join());
    byId('all').click();
    told.push(hidden.size,say(weights[4]),byId('all').disabled);
    document.onkeydown(new KeyboardEvent('keydown',{key:'v'}));
    told.push(values);
    byId('back').click();
    document.body.dataset.told=told.concat(large.hidden).join('|');
  )";
  const std::string told = told_by_chromium(to_html(page()), probe);
  if (told.empty()) GTEST_SKIP() << "chromium not found, or it cannot start";
  EXPECT_EQ(told, "true|true|true|q,0|0.0000,6.0000,7.0000,8.0000|0|0.1042|true|true|true");
}

TEST(Html, ABrowserShowsThumbnailsEnlargesAndTellsWeights) {
  // Colors as the canvas holds them, a click on layer 1 head 2, the pointer on query 1, key 3.
  const std::string probe = R"(
    const small=document.querySelectorAll('td canvas')[5];
    const pixel=[...small.getContext('2d').getImageData(3,1,1,1).data].join();
    small.click();
    const box=canvas.getBoundingClientRect();
    for(let x=box.left;x<box.right&&!tip.textContent.includes('<z>');x+=10)
      for(let y=box.top;y<box.bottom&&!tip.textContent.includes('query b \u2192 key <z>');y+=10)
        canvas.dispatchEvent(new MouseEvent('mousemove',{clientX:x,clientY:y}));
    const told=[document.querySelectorAll('td canvas').length,pixel,large.hidden,
      large.querySelector('h1').textContent,tip.textContent];
    document.onkeydown(new KeyboardEvent('keydown',{key:'ArrowRight'}));
    told.push(large.querySelector('h1').textContent);
    document.onkeydown(new KeyboardEvent('keydown',{key:'Escape'}));
    told.push(large.hidden);
    document.body.dataset.told=told.join('|').replaceAll('\n',';');
  )";
  const std::string told = told_by_chromium(to_html(page()), probe);
  if (told.empty()) GTEST_SKIP() << "chromium not found, or it cannot start";
  EXPECT_TRUE(told ==
                  "6|253,231,37,255|false|layer 1, head 2|layer 1, head 2;query b → key "
                  "<z>;weight 1|layer 1, head 0|true" ||
              told ==
                  "6|253,231,37,255|false|layer 1, head 2|layer 1, head 2;query b → key "
                  "&lt;z&gt;;weight 1|layer 1, head 0|true")
      << told;
}

TEST(Html, MasksAreOneRunAfterTheOther) {
  AttentionPage two = page();
  two.mask = "full";
  two.others = {{"window <2>", Tensor<float, 4>({2, 3, 2, 4})}};
  const std::string html = to_html(two);
  EXPECT_NE(html.find("masks=[\"full\",\"window \\u003c2>\"]"), std::string::npos);
  EXPECT_EQ(count(html, "'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=',"), 6u) << "zeros";
  EXPECT_NE(to_html(page()).find("masks=[\"\"]"), std::string::npos);
  two.others[0].weights = Tensor<float, 4>({2, 3, 2, 3});
  try {
    to_html(two);
    ADD_FAILURE();
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(),
                 "to_html: weights (2, 3, 2, 3) under 'window <2>' beside (2, 3, 2, 4)");
  }
}

TEST(Html, ABrowserSwitchesMasks) {
  // Of the other run the weights are 1 at key 2; the pointer tells which run it reads.
  AttentionPage two = page();
  two.mask = "full";
  two.others = {{"window 2", Tensor<float, 4>({2, 3, 2, 4})}};
  for (Index row = 0; row < 12; ++row) two.others[0].weights.data()[4 * row + 2] = 1;
  const std::string probe = R"(
    const buttons=[...document.querySelectorAll('body > .masks button')];
    const pixel=at=>[...document.querySelectorAll('td canvas')[0].getContext('2d')
      .getImageData(at,0,1,1).data].slice(0,3).join();
    const told=[buttons.map(b=>b.textContent).join(),pixel(2)];
    buttons[1].click();
    told.push(pixel(2),pixel(1),buttons[1].getAttribute('aria-pressed'));
    enlarge(1,2);
    told.push([...weights].slice(0,4).join());
    document.onkeydown(new KeyboardEvent('keydown',{key:'m'}));
    told.push(mask,say(weights[3]));
    large.querySelectorAll('.masks button')[1].click();
    const at=document.querySelectorAll('td canvas')[0],box=at.getBoundingClientRect();
    at.onmousemove({clientX:box.left+.6*box.width,clientY:box.top+5});
    const words=tip.textContent.split('\n');
    told.push(words[0],words[1],words[3]);
    const places=[],put=context.fillText;
    context.fillText=function(text,x,y){if(x>0)places.push([x,y]);return put.call(this,text,x,y)};
    draw();
    const near=(a,b)=>a!==b&&a[0]===b[0]&&Math.abs(a[1]-b[1])<11;
    told.push(places.filter(p=>p[1]>canvas.height||places.some(o=>near(p,o))).length);
    document.body.dataset.told=told.join('|');
  )";
  const std::string told = told_by_chromium(to_html(two), probe);
  if (told.empty()) GTEST_SKIP() << "chromium not found, or it cannot start";
  EXPECT_EQ(told,
            "full,window 2|59,82,139|253,231,37|226,221,210|true|0,0,1,0|0|0.9167|mask: window 2|"
            "layer 0, head 0|weight 1|0");
}

TEST(Html, ABrowserWritesNumbersWhereTheyAreAskedFor) {
  // 60 tokens: cells grow for the numbers. Of a picked query, lines show its weights as numbers.
  AttentionPage page;
  page.weights = Tensor<float, 4>({1, 1, 60, 60});
  for (Index i = 0; i < 60; ++i) page.weights(0, 0, i, i) = 0.25f;
  const std::string probe = R"(
    const written=[];
    const put=context.fillText;
    context.fillText=function(text,...at){written.push(String(text));return put.call(this,text,...at)};
    const count=text=>written.filter(t=>t===text).length;
    enlarge(0,0);
    const told=[count('.25'),canvas.width<1000];
    document.onkeydown(new KeyboardEvent('keydown',{key:'v'}));
    told.push(count('.25'),canvas.width>60*28);
    byId('lines').click();
    written.length=0;
    const box=canvas.getBoundingClientRect();
    canvas.onmousemove({clientX:box.left+5,clientY:box.top+12});
    told.push(count('.25'),picked.join());
    document.body.dataset.told=told.join('|');
  )";
  const std::string told = told_by_chromium(to_html(page), probe);
  if (told.empty()) GTEST_SKIP() << "chromium not found, or it cannot start";
  EXPECT_EQ(told, "0|true|60|true|1|q,0");
}

TEST(Html, ABrowserTellsTheValuesOfManyCells) {
  // 100 x 90 cells are an image: the pointer in the middle of two of them, in the second picture.
  Heatmap heatmap = heatmap_of(Tensor<double, 2>({100, 90}));
  for (Index i = 0; i < 9000; ++i) heatmap.values.data()[i] = static_cast<double>(i) / 9000;
  heatmap.column_labels.assign(90, "</script>");
  Heatmap mask = heatmap;
  for (double& value : mask.values) value = value < 0.5 ? 0 : 1;
  mask.categories = {"masked", "seen"};
  mask.column_labels.clear();
  const std::string probe = R"(
    const image=document.querySelectorAll('image'),words=[];
    const point=(i,row,column)=>{
      const b=image[i].getBoundingClientRect();
      svg.onmousemove({clientX:b.left+(column+.5)*b.width/90,clientY:b.top+(row+.5)*b.height/100});
      words.push(tip.hidden?'nothing':tip.textContent.replaceAll(/<.script>/g,'label'));
    };
    point(0,0,7);point(0,99,89);point(0,-9,3);point(1,0,0);point(1,99,2);
    document.body.dataset.told=words.join('|');
  )";
  const std::string html = to_html(std::vector{heatmap, mask});
  EXPECT_LT(html.size(), 200'000u);
  EXPECT_EQ(to_html(heatmap_of(Tensor<double, 2>({80, 90}))).find("<script"), std::string::npos)
      << "none for few cells";
  const std::string told = told_by_chromium(html, probe);
  if (told.empty()) GTEST_SKIP() << "chromium not found, or it cannot start";
  EXPECT_EQ(told, "0 → label: 0.0007778|99 → label: 0.9999|nothing|0 → 0: masked|99 → 2: seen");
}

TEST(Html, ABrowserDrawsNoTextOverAnother) {
  // Boxes of the letters as the browser's font draws them, turned as their texts are.
  const std::string probe = R"(
    const texts=[...document.querySelectorAll('svg text')];
    const svg=document.querySelector('svg'),wide=svg.width.baseVal.value,high=svg.height.baseVal.value;
    const boxes=texts.map(t=>{
      const b=t.getBBox(),m=t.getCTM(),y=Number(t.getAttribute('y'));
      const size=parseFloat(getComputedStyle(t).fontSize),top=y-.74*size,bottom=y+.2*size;
      return [[b.x,top],[b.x+b.width,top],[b.x+b.width,bottom],[b.x,bottom]].map(
        ([x,y])=>[m.a*x+m.c*y+m.e,m.b*x+m.d*y+m.f]);
    });
    const parted=(a,b)=>a.some((p,i)=>{
      const q=a[(i+1)%4],length=Math.hypot(q[0]-p[0],q[1]-p[1]);
      return b.every(r=>(q[0]-p[0])*(r[1]-p[1])-(q[1]-p[1])*(r[0]-p[0])<=length/2);
    });
    let bad=[];
    boxes.forEach((a,i)=>{
      if(a.some(p=>p[0]<0||p[1]<0||p[0]>wide||p[1]>high))bad.push(texts[i].textContent+' is outside');
      for(let j=0;j<i;++j)if(!parted(a,boxes[j])&&!parted(boxes[j],a))
        bad.push(texts[i].textContent+' over '+texts[j].textContent);
    });
    document.body.innerHTML='<p>'+texts.length+' texts: '+bad.slice(0,9).join(', ')+'.</p>';)";
  std::vector<Heatmap> heatmaps;
  for (const Index size : {12, 38, 66, 200}) {
    std::vector<std::string> labels;
    for (Index i = 0; i < size; ++i) {
      labels.push_back(std::vector{"the", "internationalization", "我", "学习", "##s"}[i % 5]);
    }
    heatmaps.push_back(heatmap_of(Tensor<float, 2>({size, size}), labels, "我爱学习人工智能"));
    heatmaps.back().values(0, 0) = 1;
  }
  const std::string page = "<!DOCTYPE html><meta charset=\"utf-8\"><body style=\"margin:0\">" +
                           to_svg(heatmaps) + "<script></script></body>";
  const std::string shown = shown_by_chromium(page, probe);
  if (shown.empty()) GTEST_SKIP() << "no chromium";
  const auto at = shown.find("<p>");
  ASSERT_NE(at, std::string::npos) << shown.substr(0, 500);
  EXPECT_NE(shown.find(" texts: .</p>", at), std::string::npos)
      << shown.substr(at, shown.find("</p>", at) - at);
}

TEST(Html, AnySizeAndNaN) {
  AttentionPage empty;
  EXPECT_NE(to_html(empty).find("data=[];"), std::string::npos);
  EXPECT_NE(to_html(empty).find("<h1>Attention</h1>"), std::string::npos);
  AttentionPage broken = page();
  broken.weights(0, 0, 0, 0) = NAN;
  EXPECT_EQ(count(to_html(broken), "<canvas"), 7u);
}

TEST(Html, LabelsThatDoNotFitAreRefused) {
  AttentionPage wrong = page();
  wrong.key_labels.pop_back();
  try {
    to_html(wrong);
    ADD_FAILURE();
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "to_html: 3 key labels for weights with 4");
  }
}

}  // namespace
}  // namespace heed
